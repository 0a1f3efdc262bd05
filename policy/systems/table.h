// The training systems that can be compared, by name. Pure.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "policy/importance/system.h"

namespace sluice::policy {

struct SystemInfo {
  const char* name;     // as users write it
  const char* meaning;  // for a user, a few words
  bool selects;         // epochs request a part of the samples (IIS)
  std::unique_ptr<System> (*make)(const SystemSettings& settings);
};

// In the order in which they are shown.
std::span<const SystemInfo> systems();

// nullptr if there is none of that name.
const SystemInfo* find_system(std::string_view name);

}  // namespace sluice::policy
