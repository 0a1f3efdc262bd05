// Which samples are of one class, where only such stand in for each other. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "policy/replacement/policy.h"

namespace sluice::optimizer {

// Of a sample of which it is not known: it stands in for nobody, and nobody for it.
inline constexpr uint32_t kUnknownLabel = UINT32_MAX;

// Labels by sample, which outlive this and may change; samples beyond them are of label 0, so that
// without labels all are of one.
class Labels {
 public:
  Labels() = default;
  explicit Labels(std::span<const uint32_t> labels) : labels_(labels) {}
  uint32_t of(SampleId sample) const { return sample < labels_.size() ? labels_[sample] : 0; }

 private:
  std::span<const uint32_t> labels_;
};

}  // namespace sluice::optimizer
