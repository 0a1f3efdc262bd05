// For several jobs that share the memory: evicts by their known orders and importance values. Pure;
// see policy.h. 24 bytes a sample, 8 more for each that is retained, and 4 for each access that is
// known ahead.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "policy/replacement/belady.h"

namespace sluice::policy {

// What one job has just read another may read soon: samples with a known next use are retained, the
// soonest first, by Belady's MIN. The order of a job that selects ends with its epoch, or earlier.
// Samples without a known next use are valued by their importance to the jobs' next selections
// (iCache's adjusted importance, section III-D): the least important is evicted first, and all
// of them before any sample with a known next use.
class Needed : public Belady {
 public:
  Needed(uint64_t capacity, uint32_t samples) : Belady(capacity, samples), importance_(samples) {}

  void set_importance(SampleId sample, float importance) override {
    admit(sample);
    importance_[sample] = importance;
    change_idle_key(sample);
  }
  float importance(SampleId sample) const override {
    return sample < importance_.size() ? importance_[sample] : 0;
  }

 protected:
  void grow(uint32_t samples) override {
    Belady::grow(samples);
    importance_.resize(samples);
  }
  uint64_t own_footprint() const override {
    return Belady::own_footprint() + importance_.capacity() * sizeof(float);
  }
  // Numbers in the order of importances; importances that differ by less than two millionths of
  // their value may get the same number.
  uint32_t idle_key(SampleId sample) const override {
    constexpr uint32_t kSign = 1U << 31;
    const auto bits = std::bit_cast<uint32_t>(importance_[sample] + 0.0F);  // no -0
    return ((bits & kSign) != 0 ? ~bits : bits | kSign) >> std::countl_zero(kMostIdle);
  }

 private:
  std::vector<float> importance_;
};

}  // namespace sluice::policy
