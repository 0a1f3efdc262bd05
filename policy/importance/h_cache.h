// The H-cache of iCache: who of the H-samples stays in memory. Pure; see policies/policy.h.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/replacement/kept_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::optimizer {

// Algorithm 1, lines 4 to 18 (iCache, section III-B). An H-sample that was read is kept if there is
// room, or in place of the least important that is kept, which is on top of a small-top heap (the
// H-heap), if it matters more than that. An L-sample is never kept here.
//
// Two things are more than the paper's text. Samples have sizes: as many go as make room, and none
// if the newcomer does not matter more than each of them. And a list that changes is taken over
// without anybody waiting: the old heap is emptied from its far end into the shadow heap, keyed by
// the new list, some entries with each access; meanwhile whoever of the two tops matters less now
// goes first. A list that comes before the last one is taken over waits for that.
class HCache : public KeptSet {
 public:
  // Bytes, samples.
  HCache(uint64_t capacity, uint32_t samples)
      : KeptSet(capacity, samples),
        list_(std::make_shared<const HList>()),
        heap_(samples),
        old_(samples) {}

  // The list that holds from now on. What is kept and not in it goes when room is wanted, before
  // anything else. Constant time.
  void set_list(std::shared_ptr<const HList> list);
  const HList& list() const { return *list_; }

  // Takes over at most `entries` more of the old heap. False: there is nothing left to take over.
  bool take_over(size_t entries);
  // A new list was taken over whole, so many times.
  uint64_t swaps() const { return swaps_; }

  uint32_t count() const { return static_cast<uint32_t>(heap_.size() + old_.size()); }
  // Some sample that is kept: each for one `place` in [0, count()).
  SampleId at(uint32_t place) const {
    return place < heap_.size() ? heap_.at(place) : old_.at(place - heap_.size());
  }

 protected:
  bool admits(SampleId sample) const override { return list_->contains(sample); }
  void grow(uint32_t samples) override {
    heap_.grow(samples);
    old_.grow(samples);
  }
  uint64_t own_footprint() const override { return heap_.footprint() + old_.footprint(); }
  void seen(uint32_t, SampleId) override { take_over(kEntriesEach); }
  void enter(SampleId sample) override { heap_.push(sample, list_->importance(sample)); }
  void leave(SampleId sample) override;
  SampleId victim(SampleId newcomer) override;

 private:
  // With each access: a heap of a million is taken over within 32,000 accesses, by a few
  // microseconds each.
  static constexpr size_t kEntriesEach = 32;
  using Heap = SampleHeap<float>;  // 8 bytes an entry, and 4 for each sample of the dataset

  std::shared_ptr<const HList> list_;  // never nullptr
  std::shared_ptr<const HList> next_;  // after the present one is taken over; nullptr: none
  Heap heap_;                          // by importance in list_
  Heap old_;                           // by that in the list before; empty: taken over
  bool taking_over_ = false;
  uint64_t swaps_ = 0;
};

}  // namespace sluice::optimizer
