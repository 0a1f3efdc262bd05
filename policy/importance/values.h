// The importance value (IV; iCache, section III-A: the loss) that each sample of a dataset had for
// one job in its last training. Pure; 4 bytes a sample. One thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

// For a sample that was never trained. A NaN: use is_known().
inline constexpr float kUnknownImportance = std::numeric_limits<float>::quiet_NaN();
inline bool is_known(float importance) { return !std::isnan(importance); }

class ImportanceValues {
 public:
  explicit ImportanceValues(uint32_t samples) : values_(samples, kUnknownImportance) {}

  // Records a value. NaN and infinite values are refused: a diverged loss must not make a sample
  // important for good. Values belong to a sample's number, never to its position in an order.
  // False: refused, or there is no such sample.
  bool observe(SampleId sample, float importance) {
    if (sample >= values_.size() || !std::isfinite(importance)) return false;
    if (!is_known(values_[sample])) ++known_;
    values_[sample] = importance;
    return true;
  }

  std::span<const float> all() const { return values_; }  // by sample
  uint32_t samples() const { return static_cast<uint32_t>(values_.size()); }
  uint32_t known() const { return known_; }

 private:
  std::vector<float> values_;
  uint32_t known_ = 0;
};

}  // namespace sluice::policy
