// What is in the stage, what is staged next, and what is evicted for it: the decisions about whole
// files, as the scheduler's are about ranges of large ones. Pure: time is an argument, and what is
// to be done is returned as values. One thread. Files are numbers of a FileTable.
//
// A copy is ahead (fetched for a reader that has not read it yet), kept (read, and retained by the
// replacement policy), or spent (read, and not retained). Copies that are ahead take their room
// from the budget first; the policy has what they leave. So a policy that knows the order retains
// nearly the whole budget's worth of files that are read again, and prefetching costs it little:
// copies that were already read in this epoch are evicted first.
//
// Of datasets whose samples cannot be read from copies the originals are prefetched, into their own
// page cache. Such a file is ahead until it was read; afterwards only the kernel decides about it.
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
#include "policy/samples/wanted.h"

namespace sluice::optimizer {

struct PlannedFetch {
  uint64_t token = 0;
  uint32_t file = 0;
  uint32_t session = 0;   // for which it is fetched
  bool check = false;     // only check whether the original still is what was copied
  bool to_cache = false;  // no copy: the original is read into its page cache
};

class StagePlan {
 public:
  explicit StagePlan(FileTable* files);

  // Retained copies stay as far as the new policy has room.
  void set_policy(PolicyKind kind);
  // The stage's limits: bytes in total, and the number of copies.
  void set_budget(uint64_t bytes, uint64_t copies);
  // How long a validation of the original is valid; after half of that time it is repeated.
  void set_stale(uint64_t ns) { stale_ns_ = ns; }

  // A sample that needs the file comes up: is the file to be fetched (or validated) now?
  FetchVerdict judge(uint32_t file, uint64_t now_ns);
  // Starts validations, as start() does, of copies that a sample needs and that were validated long
  // ago; and fetches of files that a validation found to have changed.
  void look_again(uint64_t now_ns, std::vector<PlannedFetch>* checks);
  // After kTake: makes room and starts the fetch, which must end in on_staged() or on_failed().
  PlannedFetch start(uint32_t file, uint32_t session, uint64_t now_ns, uint32_t dataset = 0);
  // `bytes`: the file's size; `charged`: what the copy takes. False: the copy is of no use (the
  // budget shrank, or the file was dropped meanwhile) and must be removed. `from_storage`: it was
  // read from the file's own storage, not from a pack. `took_ns`: on the thread that read it; 0:
  // not known.
  bool on_staged(const PlannedFetch& fetch, uint64_t device, uint64_t bytes, uint64_t charged,
                 uint64_t now_ns, bool from_storage = true, uint64_t took_ns = 0);
  // A check that found no difference. False: it is no longer of interest.
  bool on_valid(const PlannedFetch& fetch);
  // kError: retried with the next order. kMount: no file of its folder is ever fetched. kChanged: a
  // check found a different file. kFull: the memory file system has no room.
  enum class Failure : uint8_t { kError, kMount, kChanged, kFull };
  void on_failed(const PlannedFetch& fetch, Failure failure);
  // A reader has finished a sample that this file is (part of).
  Hit on_read(uint32_t session, uint32_t file);
  // The file has changed, or may have: its copy must be removed (it is in evicted() then, unless it
  // is being fetched; the result of that fetch is refused).
  void drop(uint32_t file);
  void drop_all();

  // A new order is known: files that could not be staged are tried again.
  void retry_refused() { files_->retry_refused(); }
  // The order of the coming reads of all jobs; replaces the previous one. Copies that are ahead and
  // not in it become spent.
  void predict(std::span<const uint32_t> order);
  void end_session(uint32_t session) { policy_->end_job(session); }
  // The file's importance, for policies that use it.
  void set_importance(uint32_t file, float importance);

  // The dataset's samples are read from the originals: copies that were made for it are dropped.
  void need_originals(uint32_t dataset);
  void drop_dataset(uint32_t dataset);  // the copies that were made for it
  void forget_dataset(uint32_t dataset) { originals_.erase(dataset); }

  enum class Has { kStaged, kComing, kNot };
  Has has(uint32_t file) const;
  // A copy has existed since `time_ns` or longer.
  bool offers_copy(uint32_t file, uint64_t time_ns) const;
  // The time that its storage takes to deliver the file.
  Demand demand(uint32_t file) const;
  // The same, per file of many read in parallel, ns; 0: not known yet.
  double file_ns(uint32_t file) const;
  const FileTable& files() const { return *files_; }
  bool refused(uint32_t file) const { return files_->refused(file) != FileTable::Refused::kNo; }

  // Copies that were fetched for a dataset and will not be read, with the share of the storage's
  // time that they took; the caller empties it.
  struct Wasted {
    uint32_t dataset = 0;
    uint64_t ns = 0;
  };
  std::vector<Wasted>& wasted() { return wasted_; }

  // Copies to be removed; the caller empties it.
  std::vector<uint32_t>& evicted() { return evicted_; }

  PolicyKind policy() const { return policy_kind_; }
  uint64_t budget() const { return budget_; }
  uint64_t used() const { return used_; }  // bytes charged, fetches in flight included
  uint64_t ahead() const { return ahead_; }
  uint64_t kept() const { return policy_->used(); }
  size_t copies() const { return entries_.size(); }
  // Sums over all mounts: requests in flight, how many are allowed, bytes arriving per second.
  struct Flow {
    unsigned in_flight = 0, depth = 0;
    uint64_t bandwidth = 0;
  };
  Flow flow(uint64_t now_ns) const;
  // Fetches and checks in flight.
  uint64_t in_flight() const { return flying_; }
  // How many bytes, as charged, should be ahead of the readers so that no link idles. `spread`: the
  // number of samples between the first that was not read and the last that was.
  uint64_t window(uint64_t spread, uint64_t now_ns);
  // Bytes, as charged, that can be guaranteed to stay in memory until they are read again: from now
  // on prefetched copies take at most the rest of the limit, until the next call or a change of
  // budget or policy.
  uint64_t keepable();
  // The file's copy was read before and has been in memory since.
  bool retains(uint32_t file) const;

  struct Mount {
    Mount() : model(1, kMaxDepth) {}
    StorageModel model;  // in files rather than bytes
    unsigned in_flight = 0;
    uint64_t bytes = 0, files = 0;  // all that arrived, for the mean
    uint64_t charged = 0;           // for the same files
  };
  const std::map<uint64_t, Mount>& mounts() const { return mounts_; }

  static constexpr unsigned kMaxDepth = 128;

 private:
  void make_policy(PolicyKind kind);
  enum class Place : uint8_t { kFetching, kAhead, kKept, kSpent };
  struct Entry {
    Place place = Place::kFetching;
    bool dropped = false;   // while being fetched
    bool checking = false;  // a check is in flight
    bool queued = false;    // in spent_
    bool read = false;      // by any reader
    bool awaited = false;   // in an order, and not read since that became known
    bool to_cache = false;  // no copy: the original's pages are cached
    uint64_t token = 0;     // of its fetch or check
    uint32_t session = 0;   // that it was fetched for
    uint32_t dataset = 0;   // likewise
    uint64_t took_ns = 0;   // share of the storage's time; 0: counted as wasted
    uint32_t wants = 0;     // coming readers that it was fetched for, or that found it here
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
  void ended(const Entry& entry, uint64_t bytes, Counts counts, uint64_t now_ns,
             uint64_t took_ns = 0);

  FileTable* const files_;
  std::unique_ptr<Policy> policy_;
  PolicyKind policy_kind_ = PolicyKind::kAuto;
  std::vector<float> importance_;  // by file, as declared, whether or not the policy uses it
  uint64_t budget_ = 0, max_copies_ = 0, limit_ = UINT64_MAX;
  uint64_t used_ = 0, ahead_ = 0;     // includes fetches in flight
  uint64_t awaited_ = 0;              // bytes of copies that are kept and awaited
  uint64_t flying_ = 0;               // fetches and checks
  uint64_t window_ = 0;               // last result of window()
  uint64_t most_ahead_ = UINT64_MAX;  // set by keepable()
  uint64_t stale_ns_ = 3'000'000'000;
  uint64_t next_token_ = 1;
  std::unordered_map<uint32_t, Entry> entries_;
  std::deque<std::pair<uint32_t, uint32_t>> again_;   // files and sessions
  std::deque<std::pair<uint32_t, uint64_t>> looked_;  // files and when, oldest first
  std::deque<uint32_t> spent_;           // oldest first; may name files that are no longer spent
  std::vector<uint64_t> folder_device_;  // by folder; 0: not known
  std::map<uint64_t, Mount> mounts_;     // 0: files whose mount is not known yet
  std::vector<uint32_t> evicted_, victims_;
  std::vector<Wasted> wasted_;
  std::set<uint32_t> originals_;  // datasets
};

}  // namespace sluice::optimizer
