// The policies by name. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "policy/replacement/policy.h"

namespace sluice::optimizer {

struct PolicyInfo {
  const char* name;     // as users write it
  const char* meaning;  // for a user, a few words
  bool wants_order;     // know_order() makes it better
  std::unique_ptr<Policy> (*make)(uint64_t capacity, uint32_t samples);  // bytes, samples
};

// In the order in which they are shown.
std::span<const PolicyInfo> policies();

// nullptr if there is none of that name.
const PolicyInfo* find_policy(std::string_view name);

}  // namespace sluice::optimizer
