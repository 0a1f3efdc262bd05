// The copies in the stage and the fetches in flight, by file: what each is there for, and the sums
// over them. Originals that are prefetched into their own page cache count as copies. Pure; one
// thread. Files are numbers of a FileTable.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/storage/storage_model.h"
#include "policy/util/ids.h"

namespace sluice::policy {

struct StagedCopy {
  // kAhead: fetched for a reader that has not read it yet. kRead: a reader has just read it. Then
  // it is kRetained if the replacement policy retains it, and kSpent if not.
  enum class State : uint8_t { kFetching, kAhead, kRead, kRetained, kSpent };
  State state = State::kFetching;
  bool dropped = false;    // while being fetched
  bool checking = false;   // a check is in flight
  bool queued = false;     // among the spent ones, in CopyTable
  bool read = false;       // by any reader
  bool to_cache = false;   // no copy: the original's pages are cached
  bool companion = false;  // while being fetched: it comes with a chunk, for no reader yet
  bool brought = false;    // it came so
  uint8_t awaited = 0;     // times in the orders that are left, or kMostAwaited if there are more
  uint64_t token = 0;      // of its fetch or check
  SessionId session{};     // that it was fetched for
  DatasetId dataset{};     // likewise
  uint64_t took_ns = 0;    // share of the storage's time; 0: counted as wasted
  uint32_t readers = 0;    // coming readers that it was fetched for, or that found it here
  uint64_t charged = 0, bytes = 0;
  uint64_t device = 0;
  uint64_t validated_ns = 0, issued_ns = 0, staged_ns = 0;
  StorageModel::Sample sample;

  static constexpr uint8_t kMostAwaited = UINT8_MAX;

  bool is_ahead() const { return state == State::kFetching || state == State::kAhead; }
};

class CopyTable {
 public:
  using State = StagedCopy::State;

  StagedCopy* find(SampleFileId file);  // nullptr: none. Valid until it is removed
  const StagedCopy* find(SampleFileId file) const;
  const std::unordered_map<SampleFileId, StagedCopy>& all() const { return copies_; }

  enum class Has { kStaged, kComing, kNot };
  Has has(SampleFileId file) const;
  // The file's copy was read before and has been in memory since, or came with another's chunk.
  bool retains(SampleFileId file) const;
  // A copy has existed since `time_ns` or longer.
  bool offers(SampleFileId file, uint64_t time_ns) const;

  uint64_t used() const { return used_; }        // bytes charged, fetches in flight included
  uint64_t ahead() const { return ahead_; }      // likewise, of what no reader has read yet
  uint64_t awaited() const { return awaited_; }  // of copies that are retained and awaited

  // REQUIRES: the file has no copy. It is kFetching.
  StagedCopy& add(SampleFileId file, uint64_t charged);
  void set_charged(StagedCopy& copy, uint64_t bytes);
  void set_state(SampleFileId file, StagedCopy& copy, State state);
  void set_awaited(StagedCopy& copy, uint8_t times);
  void end_awaited(StagedCopy& copy);  // once less: a reader has read it
  // Each copy is awaited as many times as `wanted` says, by file, and has as many coming readers as
  // `readers` says. What was ahead and has none is spent if it is not awaited; if it is, it counts
  // as read and is returned, for the policy to decide.
  std::vector<SampleFileId> await(const std::vector<uint8_t>& wanted,
                                  const std::unordered_map<SampleFileId, uint32_t>& readers);
  void remove(SampleFileId file);  // a fetch that brought no copy
  void evict(SampleFileId file);   // the copy must be removed
  // The spent copy that was spent first, which is no longer among them; zero: none.
  SampleFileId take_spent();

  // Copies to be removed, each given once.
  std::vector<SampleFileId> take_evicted() { return std::exchange(evicted_, {}); }
  // Copies that were fetched for a dataset and will not be read, with the share of the storage's
  // time that they took, each given once. What the caller does then may waste more.
  struct Wasted {
    DatasetId dataset{};
    uint64_t ns = 0;
  };
  std::vector<Wasted> take_wasted() { return std::exchange(wasted_, {}); }

 private:
  void count(const StagedCopy& copy, bool added);
  void waste(StagedCopy& copy);

  std::unordered_map<SampleFileId, StagedCopy> copies_;
  uint64_t used_ = 0, ahead_ = 0, awaited_ = 0;
  std::deque<SampleFileId> spent_;  // oldest first; may name files that are no longer spent
  std::vector<SampleFileId> evicted_;
  std::vector<Wasted> wasted_;
};

}  // namespace sluice::policy
