// The replacement policies: one table. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "policy/replacement/policy.h"

namespace sluice::policy {

enum class PolicyKind : uint8_t {
  kAuto,
  kLru,
  kLfu,
  kFifo,
  kMinIo,
  kQuiver,
  kShade,
  kBelady,
  kNeeded,
  kFileOrder,  // chosen by the planner alone: users cannot name it
};

struct PolicyInfo {
  PolicyKind kind;
  const char* name;     // as users write it, and as it is shown
  const char* meaning;  // for a user, a few words
  bool wants_order;     // append_order() makes it better
  std::unique_ptr<Policy> (*make)(uint64_t capacity, uint32_t samples);  // bytes, samples
};

// Those that users can name, in the order in which they are shown.
std::span<const PolicyInfo> policies();

// Of those; nullptr if none has that name.
const PolicyInfo* find_policy(std::string_view name);

const PolicyInfo& policy_info(PolicyKind kind);

}  // namespace sluice::policy
