// What the policies that retain by rank share: the least of what is retained makes room, and only
// for a newcomer that ranks higher. Pure; see policy.h.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/retained_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::policy {

// Of equal ranks the lowest sample number is evicted. Memory: a Key and 4 bytes for each sample, an
// entry of the heap for each that is retained.
template <typename Key>
class RankedSet : public RetainedSet {
 public:
  RankedSet(uint64_t capacity, uint32_t samples)
      : RetainedSet(capacity, samples), keys_(samples), heap_(samples) {}

 protected:
  void set_key(SampleId sample, Key key) {
    admit(sample);
    keys_[sample] = key;
    if (heap_.contains(sample)) heap_.change(sample, key);
  }
  Key key(SampleId sample) const { return sample < keys_.size() ? keys_[sample] : Key{}; }

  void grow(uint32_t samples) override {
    keys_.resize(samples);
    heap_.grow(samples);
  }
  uint64_t own_footprint() const override {
    return keys_.capacity() * sizeof(Key) + heap_.footprint();
  }
  void enter(SampleId sample) override { heap_.push(sample, keys_[sample]); }
  void leave(SampleId sample) override { heap_.remove(sample); }
  SampleId victim(SampleId newcomer) override {
    if (newcomer != kNoSample && (heap_.empty() || heap_.top_key() >= keys_[newcomer])) {
      return kNoSample;
    }
    return heap_.top();
  }

 private:
  std::vector<Key> keys_;
  SampleHeap<Key> heap_;
};

}  // namespace sluice::policy
