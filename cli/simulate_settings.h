// The options of `sluice simulate`, checked. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/simulate.h"
#include "cli/simulate_engine.h"
#include "cli/simulate_workload.h"
#include "policy/systems/table.h"

namespace sluice::cli {

// A share of the dataset, or bytes if `share` is 0.
struct MemorySize {
  double share = 0;
  uint64_t bytes = 0;
  uint64_t of(uint64_t dataset_bytes) const;
};

struct SimulateSettings {
  Synthetic synthetic;
  std::string trace;  // used instead of `synthetic` if not empty
  std::vector<MemorySize> memory;
  std::vector<const policy::PolicyInfo*> policies;
  std::vector<const policy::SystemInfo*> systems;  // used instead of `policies` if not empty
  double drift = 0;
  Storage storage;
  std::string csv, picture, decisions;
  bool advise = false;
};

// Throws SimulateFailure for an invalid value.
SimulateSettings simulate_settings(const SimulateOptions& options);

}  // namespace sluice::cli
