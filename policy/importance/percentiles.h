// What share of some values is not above another. Pure; immutable.
#pragma once

#include <span>
#include <vector>

namespace sluice::policy {

class Percentiles {
 public:
  // Those that are unknown do not count. Of 8,192 values and more some thousand are remembered.
  explicit Percentiles(std::span<const float> values);

  // In (0, 1]. REQUIRES: the value is known. A half if none is remembered.
  float of(float value) const;

 private:
  std::vector<float> sorted_;
};

}  // namespace sluice::policy
