// What each sample of a dataset has mattered to one job when it was trained last: its importance
// value (IV; iCache, section III-A: the loss). Pure; 4 bytes a sample. One thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::optimizer {

// Of a sample that was never trained. A NaN: ask is_known().
inline constexpr float kUnknownImportance = std::numeric_limits<float>::quiet_NaN();
inline bool is_known(float importance) { return !std::isnan(importance); }

class ImportanceValues {
 public:
  explicit ImportanceValues(uint32_t samples) : values_(samples, kUnknownImportance) {}

  // What the job observed. A value that is no number, or infinite, says nothing and is refused: a
  // loss that diverged must not make a sample important for good. Importance belongs to a sample's
  // number, never to its place in an order. False: refused, or there is no such sample.
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

}  // namespace sluice::optimizer
