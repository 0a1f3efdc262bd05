// Classes of samples, where only samples of one class may substitute for each other. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "policy/replacement/policy.h"

namespace sluice::policy {

// For a sample whose label is not known: it is neither a substitute nor substituted.
inline constexpr uint32_t kUnknownLabel = UINT32_MAX;

// Refers to labels by sample, which must outlive it and may change. Samples beyond them have label
// 0, so that without labels all samples have the same one.
class Labels {
 public:
  Labels() = default;
  explicit Labels(std::span<const uint32_t> labels) : labels_(labels) {}
  uint32_t of(SampleId sample) const { return sample < labels_.size() ? labels_[sample] : 0; }

 private:
  std::span<const uint32_t> labels_;
};

}  // namespace sluice::policy
