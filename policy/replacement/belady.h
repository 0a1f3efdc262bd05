// Belady's MIN. Pure; see policy.h. 20 bytes a sample, 8 more for each that is retained, and 4 for
// each access that is known ahead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/replacement/retained_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::policy {

// Evicts the sample whose next use is farthest in the future (Belady, "A study of replacement
// algorithms for a virtual-storage computer", 1966); a newcomer that is used no sooner than the
// victim is not retained. Samples without a known next use count as farthest; of equals the lowest
// number is evicted. With samples of one size no policy hits more often. With different sizes the
// best choice is NP-hard to find: victims are evicted in the order above until the newcomer fits,
// whatever their size; if one of them is used before the newcomer, nothing changes.
//
// The order may be known for one epoch or several: append_order() adds to it.
class Belady : public RetainedSet {
 public:
  // Places in the order are numbered with 32 bits, and renumbered from 0 before `last_place`.
  static constexpr uint32_t kLastPlace = 0xf0000000;

  Belady(uint64_t capacity, uint32_t samples, uint32_t last_place = kLastPlace)
      : RetainedSet(capacity, samples),
        last_place_(last_place),
        next_(samples, kUnknown),
        last_(samples, kUnknown),
        heap_(samples) {}

  void passed(SampleId sample) override;
  void append_order(std::span<const SampleId> order) override;
  void clear_order() override;

 protected:
  void grow(uint32_t samples) override;
  uint64_t own_footprint() const override {
    return (next_.capacity() + last_.capacity() + after_.capacity()) * sizeof(uint32_t) +
           heap_.footprint();
  }
  void seen(uint32_t job, SampleId sample) override;
  void hit(SampleId sample) override { heap_.change(sample, key(sample)); }
  void enter(SampleId sample) override { heap_.push(sample, key(sample)); }
  void leave(SampleId sample) override { heap_.remove(sample); }
  SampleId victim(SampleId newcomer) override;

  // Eviction order of samples without a known next use: least key first. At most kMostIdle.
  static constexpr uint32_t kMostIdle = ~kLastPlace;
  virtual uint32_t idle_key(SampleId sample) const { return static_cast<void>(sample), 0; }
  // idle_key() of the sample has changed.
  void change_idle_key(SampleId sample) {
    if (heap_.contains(sample)) heap_.change(sample, key(sample));
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint32_t kPassed = UINT32_MAX - 1;  // in after_: that access has happened

  // The least key, on top of the heap, is that of the sample needed last.
  uint32_t key(SampleId sample) const {
    return next_[sample] == kUnknown ? idle_key(sample) : ~next_[sample];
  }

  void retire();
  void renumber();

  const uint32_t last_place_;
  uint32_t first_ = 0;           // place of after_[0]
  size_t passed_ = 0;            // leading entries of after_ that have happened
  std::vector<uint32_t> after_;  // by place: the same sample's next place, kUnknown or kPassed
  std::vector<uint32_t> next_;   // by sample: the place where it is needed next, or kUnknown
  std::vector<uint32_t> last_;   // by sample: the last place known; REQUIRES next_ != kUnknown
  SampleHeap<uint32_t> heap_;
};

}  // namespace sluice::policy
