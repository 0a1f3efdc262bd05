// What the tests of importance share.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "policy/util/random.h"

namespace sluice::policy {

// Importance values as losses are: many small ones and few large.
inline std::vector<float> random_values(uint32_t samples, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(samples);
  for (float& value : values) value = static_cast<float>(-std::log(random.unit()));
  return values;
}

}  // namespace sluice::policy
