// What is in the stage, what comes next into it, and who makes room: the decisions about whole
// files, as the scheduler's are about parts of big ones. Pure: time is an argument, and what is to
// be done goes out as values. One thread. Files are numbers of a FileTable.
//
// A copy is ahead (fetched for somebody who has not read it yet), kept (read, and the policy says
// that it is worth its memory), or spent (read, and not). Copies that are ahead take their room
// from the budget first; the policy has what they leave. So a policy that knows the order keeps
// nearly the whole budget full of what comes again, and what is fetched ahead costs it little:
// those that were read already in this epoch make way first.
//
// Of datasets whose samples cannot be read from copies the originals are read ahead, into their own
// page cache. Such a file is ahead until it was read, and then the kernel's alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/planner/storage_model.h"
#include "policy/replacement/policy.h"
#include "policy/replacement/table.h"
#include "policy/samples/file_table.h"

namespace sluice::optimizer {

struct PlannedFetch {
  uint64_t token = 0;
  uint32_t file = 0;
  uint32_t session = 0;   // for whom
  bool check = false;     // only look whether the original is still what was copied
  bool to_cache = false;  // no copy: the original is read into its page cache
};

class StagePlan {
 public:
  explicit StagePlan(FileTable* files);

  // A name of the policies' table; what is kept stays as far as it fits.
  void set_policy(PolicyKind kind);
  // Bytes for everything, and the number of copies.
  void set_budget(uint64_t bytes, uint64_t copies);
  // How long a look at the original is good for, half of that being the time to look again.
  void set_stale(uint64_t ns) { stale_ns_ = ns; }

  enum class Answer { kTake, kLater, kNever };
  // Somebody will read the file soon: is it to be fetched (or looked at) now?
  Answer judge(uint32_t file, uint64_t now_ns);
  // Copies that somebody will read and that were looked at long ago: looks at them are under way
  // then, as after start(). So are fetches of those that were found to be others.
  void look_again(uint64_t now_ns, std::vector<PlannedFetch>* checks);
  // After kTake: room is made and the fetch is under way. It must end in on_staged() or
  // on_failed().
  PlannedFetch start(uint32_t file, uint32_t session, uint64_t now_ns, uint32_t dataset = 0);
  // `bytes`, the file's; `charged`, what the copy takes. False: there is no use for it (the
  // budget shrank, the file was dropped meanwhile): the copy is to be removed.
  // `from_storage`: and not from a pack.
  bool on_staged(const PlannedFetch& fetch, uint64_t device, uint64_t bytes, uint64_t charged,
                 uint64_t now_ns, bool from_storage = true);
  // A check that found no difference. False: nobody cares any more.
  bool on_valid(const PlannedFetch& fetch);
  // kError: try again with the next order. kMount: nothing of its folder is ever fetched. kChanged:
  // a check found another file. kFull: the memory file system has no room.
  enum class Failure : uint8_t { kError, kMount, kChanged, kFull };
  void on_failed(const PlannedFetch& fetch, Failure failure);
  // A reader is at the end of a sample that this file was (part) of. What its copy was good for:
  // bytes that were read for the first time or again, and the time of the storage that it saved.
  struct Read {
    uint64_t first_bytes = 0, again_bytes = 0;
    Demand saved;
  };
  Read on_read(uint32_t session, uint32_t file);
  // The file has changed, or may have: its copy is to be removed (it is in evicted() then, unless
  // it is being fetched; that fetch's result is refused).
  void drop(uint32_t file);
  void drop_all();

  // An order was told: what could not be staged is tried again.
  void forgive() { files_->forgive(); }
  // Who reads what next, all jobs together; replaces what was said before. Copies that are ahead
  // and not in it are spent.
  void foretell(std::span<const uint32_t> order);
  void end_session(uint32_t session) { policy_->end_job(session); }
  // What the file's copy is worth keeping, for policies that go by it.
  void set_importance(uint32_t file, float importance);

  // Samples of the dataset are read from the originals: copies that were made for it are dropped.
  void need_originals(uint32_t dataset);
  void drop_dataset(uint32_t dataset);  // the copies that were made for it
  void forget_dataset(uint32_t dataset) { originals_.erase(dataset); }

  enum class Has { kStaged, kComing, kNot };
  Has has(uint32_t file) const;
  // A copy has been there since before `time_ns`.
  bool offers_copy(uint32_t file, uint64_t time_ns) const;
  // What its storage takes to give the file.
  Demand demand(uint32_t file) const;
  // How long it takes for each of many, ns; 0: not known yet.
  double file_ns(uint32_t file) const;
  bool refused(uint32_t file) const { return files_->refused(file) != FileTable::Refused::kNo; }

  // Copies that were fetched for a dataset and that nobody will read, by what share of the
  // storage's time they took; the caller empties it.
  struct Wasted {
    uint32_t dataset = 0;
    uint64_t ns = 0;
  };
  std::vector<Wasted>& wasted() { return wasted_; }

  // Copies to be removed; the caller empties it.
  std::vector<uint32_t>& evicted() { return evicted_; }

  PolicyKind policy() const { return policy_kind_; }
  uint64_t budget() const { return budget_; }
  uint64_t used() const { return used_; }  // bytes charged, fetches under way included
  uint64_t ahead() const { return ahead_; }
  uint64_t kept() const { return policy_->used(); }
  size_t copies() const { return entries_.size(); }
  // All mounts together: requests under way, how many there may be, bytes a second that come.
  struct Flow {
    unsigned in_flight = 0, depth = 0;
    uint64_t bandwidth = 0;
  };
  Flow flow(uint64_t now_ns) const;
  // Fetches and looks under way.
  uint64_t in_flight() const { return flying_; }
  // How much should be ahead of the readers so that no link runs dry, as charged; `spread`: how
  // many samples lie between the first that was not read and the last that was.
  uint64_t window(uint64_t spread, uint64_t now_ns);
  // Bytes, as charged, that may be promised to stay in memory until they are read again: what is
  // fetched ahead takes no more than the rest of the limit from now on, until this is asked again
  // or the budget or the policy changes.
  uint64_t keepable();
  // The file's copy was read before and has been in memory since.
  bool retains(uint32_t file) const;

  struct Mount {
    Mount() : model(1, kMaxDepth) {}
    StorageModel model;  // in files rather than bytes
    unsigned in_flight = 0;
    uint64_t bytes = 0, files = 0;  // all that came, for the mean
    uint64_t charged = 0;           // for the same files
  };
  const std::map<uint64_t, Mount>& mounts() const { return mounts_; }

  static constexpr unsigned kMaxDepth = 128;
  // What tmpfs takes for a file of so many bytes.
  static uint64_t charge(uint64_t bytes) { return FileTable::charge(bytes); }

 private:
  void make_policy(PolicyKind kind);
  enum class Place : uint8_t { kFetching, kAhead, kKept, kSpent };
  struct Entry {
    Place place = Place::kFetching;
    bool dropped = false;   // while being fetched
    bool checking = false;  // being looked at
    bool queued = false;    // in spent_
    bool read = false;      // by somebody
    bool awaited = false;   // in some order, and not read since that was told
    bool to_cache = false;  // there is no copy, the original's pages are cached
    uint64_t token = 0;     // of its fetch or check
    uint32_t session = 0;   // for whom it was fetched
    uint32_t dataset = 0;   // likewise
    uint64_t took_ns = 0;   // its share of the storage's time; 0: counted as wasted
    uint32_t wants = 0;     // readers to come for whom it was fetched, or found here
    uint64_t charged = 0, bytes = 0;
    uint64_t device = 0;
    uint64_t validated_ns = 0, issued_ns = 0, staged_ns = 0;
    StorageModel::Sample sample;
  };

  uint64_t device_of(uint32_t file) const;
  uint64_t limit() const { return std::min(budget_, limit_); }
  bool make_room(uint64_t bytes);
  bool may_be_ahead(uint64_t bytes) const;
  bool spares_awaited(uint64_t bytes) const;
  void set_awaited(Entry& entry, bool awaited);
  void set_place(Entry& entry, Place place);
  void waste(Entry& entry);
  void fit_policy(uint64_t bytes);
  void offer(uint32_t session, uint32_t file, Entry& entry);
  void evict_kept();
  void spend(uint32_t file, Entry& entry);
  void looked_at(uint32_t file, Entry& entry);
  Entry* find(const PlannedFetch& fetch);
  void evict(uint32_t file);
  enum class Counts : uint8_t { kNot, kRate, kRateAndLatency };
  void ended(const Entry& entry, uint64_t bytes, Counts counts, uint64_t now_ns);

  FileTable* const files_;
  std::unique_ptr<Policy> policy_;
  PolicyKind policy_kind_ = PolicyKind::kAuto;
  std::vector<float> importance_;  // by file, as it was told, whatever the policy goes by
  uint64_t budget_ = 0, max_copies_ = 0, limit_ = UINT64_MAX;
  uint64_t used_ = 0, ahead_ = 0;     // ahead_: with what is being fetched
  uint64_t awaited_ = 0;              // kept, and awaited
  uint64_t flying_ = 0;               // fetches and looks
  uint64_t window_ = 0;               // what window() said last
  uint64_t most_ahead_ = UINT64_MAX;  // what keepable() left
  uint64_t stale_ns_ = 3'000'000'000;
  uint64_t next_token_ = 1;
  std::unordered_map<uint32_t, Entry> entries_;
  std::deque<std::pair<uint32_t, uint32_t>> again_;   // files and sessions
  std::deque<std::pair<uint32_t, uint64_t>> looked_;  // files and when, oldest first
  std::deque<uint32_t> spent_;           // oldest first; may name files that are spent no more
  std::vector<uint64_t> folder_device_;  // by folder; 0: not known
  std::map<uint64_t, Mount> mounts_;     // 0: files whose mount is not known yet
  std::vector<uint32_t> evicted_, victims_;
  std::vector<Wasted> wasted_;
  std::set<uint32_t> originals_;  // datasets
};

}  // namespace sluice::optimizer
