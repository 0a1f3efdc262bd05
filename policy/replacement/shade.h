// The exact part of SHADE. Pure; see policy.h. 16 bytes a sample, 10 more for each that is kept.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/kept_set.h"
#include "policy/replacement/sample_heap.h"

namespace sluice::optimizer {

// SHADE (Khan et al., "SHADE: enable fundamental cacheability for distributed deep learning
// training", FAST 2023) scores samples by their loss, trains on important ones several times an
// epoch, and keeps the important ones in the cache. Drawing more often changes what is trained on
// and is not here; what is exact is the cache: the least important goes, and only for one that is
// more important. Of equally important ones the lowest number goes. Where nobody tells
// importances all are equal, nobody is displaced, and what remains of SHADE is MinIO.
class Shade : public KeptSet {
 public:
  Shade(uint64_t capacity, uint32_t samples)
      : KeptSet(capacity, samples), importance_(samples), heap_(samples) {}

  void set_importance(SampleId sample, float importance) override {
    admit(sample);
    importance_[sample] = importance;
    if (heap_.contains(sample)) heap_.change(sample, importance);
  }
  float importance(SampleId sample) const override {
    return sample < importance_.size() ? importance_[sample] : 0;
  }

 protected:
  void grow(uint32_t samples) override {
    importance_.resize(samples);
    heap_.grow(samples);
  }
  uint64_t own_footprint() const override {
    return importance_.capacity() * sizeof(float) + heap_.footprint();
  }
  void enter(SampleId sample) override { heap_.push(sample, importance_[sample]); }
  void leave(SampleId sample) override { heap_.remove(sample); }
  SampleId victim(SampleId newcomer) override {
    if (newcomer != kNoSample && (heap_.empty() || heap_.top_key() >= importance_[newcomer])) {
      return kNoSample;
    }
    return heap_.top();
  }

 private:
  std::vector<float> importance_;
  SampleHeap<float> heap_;
};

}  // namespace sluice::optimizer
