// The H-list of iCache (section III-A): the most important samples of a job's present epoch, or of
// a later one (Coming), with their importance. Pure; threads may share one that is not changed by
// set().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/importance/values.h"
#include "policy/replacement/policy.h"

namespace sluice::policy {

// The share of the selected samples that are H-samples. The paper does not give one; 70 % with
// loss percentiles yields the hit ratio that it publishes for the H-cache alone.
inline constexpr double kHShare = 0.7;

// As a job supplies it: 16 bytes, as in the paper.
struct HListEntry {
  uint64_t sample;
  double importance;
};
static_assert(sizeof(HListEntry) == 16);

// Looked up once per request and often while a heap is built, hence a flat array: 4 bytes for each
// sample of the dataset, which is less than 16 for each entry.
class HList {
 public:
  HList() = default;
  // Entries whose sample is not below `samples`, or whose importance is not finite, are left out.
  HList(uint32_t samples, std::span<const HListEntry> entries);

  bool contains(SampleId sample) const {
    return sample < importance_.size() && is_known(importance_[sample]);
  }
  // Below that of every H-sample if the sample is not in the list.
  float importance(SampleId sample) const {
    return contains(sample) ? importance_[sample] : -std::numeric_limits<float>::infinity();
  }
  uint32_t size() const { return size_; }  // H-samples
  uint32_t samples() const { return static_cast<uint32_t>(importance_.size()); }
  // kUnknownImportance: not in the list any more. REQUIRES: there is such a sample.
  void set(SampleId sample, float importance);

 private:
  std::vector<float> importance_;  // by sample; kUnknownImportance: not in the list
  uint32_t size_ = 0;
};

// The most important `share` (0 to 1) of the chosen samples; of equally important ones the lower
// numbers. Samples of unknown importance are left out.
std::vector<HListEntry> top_of(const std::vector<bool>& chosen, std::span<const float> values,
                               double share = kHShare);

}  // namespace sluice::policy
