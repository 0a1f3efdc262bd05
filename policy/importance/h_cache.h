// The H-cache of iCache: which H-samples are retained. Pure; see policy/replacement/policy.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/replacement/retained_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::policy {

// Algorithm 1, lines 4 to 18 (iCache, section III-B). An H-sample that was read is retained if
// there is room, or if it is more important than the least important retained one, which is then
// evicted: the top of a min-heap (the H-heap). A sample that is not in the list is not retained.
//
// Four additions to the paper. If `fills`, any sample is retained while there is room, and evicted
// before all H-samples: without that the epoch in which all samples are alike, for want of values,
// leaves the memory empty, and one whose list is shorter than the memory never fills it. Samples
// have sizes: as many are evicted as make room, and none unless the newcomer is more important than
// each of them. And a new list is adopted without a pause: each access moves some entries from the
// far end of the old heap to the shadow heap, which is keyed by the new list; meanwhile the victim
// is whichever of the two tops is less important by the new list. A further list that arrives
// before the move is complete waits for that. And if samples are `awaited`, they make room for
// others only once they were accessed: each is requested once in its epoch, so that one that is
// evicted before was retained for nothing.
class HCache : public RetainedSet {
 public:
  // Bytes, samples.
  HCache(uint64_t capacity, uint32_t samples, bool fills = false)
      : RetainedSet(capacity, samples),
        fills_(fills),
        lists_{std::make_shared<const HList>(), {}, {}},
        heap_(samples),
        old_(samples) {}

  // Replaces the list. Retained samples that are not in it are evicted before all others when room
  // is needed. Constant time.
  void set_list(std::shared_ptr<const HList> list) { set_lists({std::move(list), {}, {}}); }
  using Awaited = std::vector<bool>;  // by sample
  // The same with a list of the cache's own, which revise() changes. `awaited`: what the present
  // epoch requests, whatever its importance, until it is accessed.
  void set_list(std::shared_ptr<HList> own, Awaited awaited) {
    set_lists({own, own, std::make_shared<Awaited>(std::move(awaited))});
  }
  // What was set last by these, as it is now; nullptr: a list that is not the cache's own.
  const HList* own_list() const { return latest().own.get(); }
  const Awaited* awaited() const { return latest().awaited.get(); }
  void stop_awaiting(const Awaited& samples);
  // The importance of a sample, retained or not, has changed; kUnknownImportance: it is not in the
  // list any more. No effect on a list that is not the cache's own.
  void revise(SampleId sample, float importance);
  const HList& list() const { return *lists_.list; }

  // Moves at most `entries` more from the old heap. False: nothing is left to move.
  bool take_over(size_t entries);
  // Number of lists whose adoption is complete.
  uint64_t swaps() const { return swaps_; }

  uint32_t count() const { return static_cast<uint32_t>(heap_.size() + old_.size()); }
  // A retained sample: each at one `place` in [0, count()).
  SampleId at(uint32_t place) const {
    return place < heap_.size() ? heap_.at(place) : old_.at(place - heap_.size());
  }

 protected:
  bool admits(SampleId sample) const override { return fills_ || list().contains(sample); }
  void grow(uint32_t samples) override {
    heap_.grow(samples);
    old_.grow(samples);
  }
  uint64_t own_footprint() const override { return heap_.footprint() + old_.footprint(); }
  void seen(uint32_t, SampleId sample) override;
  void hit(SampleId sample) override;
  void enter(SampleId sample) override { heap_.push(sample, key(sample)); }
  void leave(SampleId sample) override;
  SampleId victim(SampleId newcomer) override;

 private:
  // Per access: a heap of a million entries is moved within 32,000 accesses, at a few microseconds
  // each.
  static constexpr size_t kEntriesEach = 32;
  using Heap = SampleHeap<uint32_t>;  // 8 bytes an entry, and 4 for each sample of the dataset
  static constexpr uint32_t kSpared = uint32_t{1} << 31;

  struct Lists {
    std::shared_ptr<const HList> list;
    std::shared_ptr<HList> own;        // the same, or nullptr
    std::shared_ptr<Awaited> awaited;  // nullptr: not known

    void end_awaited(SampleId sample) const {
      if (awaited != nullptr && sample < awaited->size()) (*awaited)[sample] = false;
    }
  };
  void set_lists(Lists lists);

  const Lists& latest() const { return next_.list != nullptr ? next_ : lists_; }
  // Least for what is evicted first.
  uint32_t key(SampleId sample) const;
  void change_key(SampleId sample);

  const bool fills_;
  Lists lists_;  // a list, always
  Lists next_;   // adopted after these; without a list: none
  Heap heap_;    // by importance in the list
  Heap old_;     // by importance in the list before; empty: all moved
  bool taking_over_ = false;
  uint64_t swaps_ = 0;
};

}  // namespace sluice::policy
