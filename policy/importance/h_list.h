// The H-list of iCache (section III-A): the samples that matter most to a job in its present epoch,
// and how much. Pure; never changes once it is made, so that threads may share one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/importance/values.h"
#include "policy/replacement/policy.h"

namespace sluice::optimizer {

// The share of the selected samples that are H-samples. The paper does not give one; 70 % together
// with loss percentiles gives the hit ratio that it publishes for the H-cache alone.
inline constexpr double kHShare = 0.7;

// As it comes out of a job: 16 bytes, as the paper has it.
struct HListEntry {
  uint64_t sample;
  double importance;
};
static_assert(sizeof(HListEntry) == 16);

// Looked up once for each request and often while a heap is built, so it lies flat: 4 bytes for
// each sample of the dataset, which is less than 16 for each that is in it.
class HList {
 public:
  HList() = default;
  // Entries whose sample is not below `samples`, or whose importance is not finite, are left out.
  HList(uint32_t samples, std::span<const HListEntry> entries);

  bool contains(SampleId sample) const {
    return sample < importance_.size() && is_known(importance_[sample]);
  }
  // Less than that of every H-sample if the sample is none.
  float importance(SampleId sample) const {
    return contains(sample) ? importance_[sample] : -std::numeric_limits<float>::infinity();
  }
  uint32_t size() const { return size_; }  // H-samples

 private:
  std::vector<float> importance_;  // by sample; kUnknownImportance: not in the list
  uint32_t size_ = 0;
};

// The most important `share` (0 to 1) of those that were chosen; of equally important ones the
// lower numbers. Samples of which nothing is known are not in it.
std::vector<HListEntry> top_of(const std::vector<bool>& chosen, std::span<const float> values,
                               double share = kHShare);

}  // namespace sluice::optimizer
