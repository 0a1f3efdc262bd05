// Least frequently used. Pure; see policy.h. 16 bytes a sample, 20 more for each that is retained.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/retained_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::policy {

// Accesses are counted from the start, also of samples that are not retained; of equal counts the
// least recently used is evicted. The newcomer is always retained. (iCache's iLFU is this under
// importance sampling.)
class Lfu : public RetainedSet {
 public:
  Lfu(uint64_t capacity, uint32_t samples)
      : RetainedSet(capacity, samples), counts_(samples), heap_(samples) {}

 protected:
  void grow(uint32_t samples) override {
    counts_.resize(samples);
    heap_.grow(samples);
  }
  uint64_t own_footprint() const override {
    return counts_.capacity() * sizeof(uint32_t) + heap_.footprint();
  }
  void seen(uint32_t, SampleId sample) override {
    ++now_;
    if (counts_[sample] < kMostCounted) ++counts_[sample];
  }
  void hit(SampleId sample) override { heap_.change(sample, key(sample)); }
  void enter(SampleId sample) override { heap_.push(sample, key(sample)); }
  void leave(SampleId sample) override { heap_.remove(sample); }
  SampleId victim(SampleId) override { return heap_.top(); }

 private:
  static constexpr unsigned kTimeBits = 40;  // enough for 10^12 accesses
  static constexpr uint32_t kMostCounted = (1U << (64 - kTimeBits)) - 1;

  uint64_t key(SampleId sample) const { return uint64_t{counts_[sample]} << kTimeBits | now_; }

  uint64_t now_ = 0;  // accesses
  std::vector<uint32_t> counts_;
  SampleHeap<uint64_t> heap_;
};

}  // namespace sluice::policy
