// Runs whole training systems over a synthetic job, and computes their cost on a storage: `sluice
// simulate --system`. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/simulate_engine.h"
#include "cli/simulate_settings.h"
#include "policy/systems/table.h"

namespace sluice::cli {

// One epoch, or the mean of several.
struct SystemCounts {
  double requests = 0, asked = 0;                              // samples; bytes
  std::array<double, policy::kDeliveryKinds> deliveries = {};  // requests, by kind of answer
  double missed = 0;       // bytes, each sample read by itself while the job waits
  double in_packages = 0;  // misses that were read in a package while the job waited
  double packages = 0, packed = 0, useful = 0, written = 0;  // the rest in bytes

  double share(policy::DeliveryKind kind) const;  // of the requests
  // Hits of all kinds: H, L exact and substituted.
  double hit_ratio() const;
  // Requests to storage for one sample each.
  double single_reads() const;
  // Adds `factor` times the other.
  SystemCounts& add(const SystemCounts& other, double factor = 1);
};

struct SystemOutcome {
  const policy::SystemInfo* system = nullptr;
  uint64_t memory = 0;               // bytes
  std::vector<SystemCounts> epochs;  // never empty
  SystemCounts steady() const { return mean_of_later(epochs); }
};

// The decision at one position of an epoch. packages: those read since the previous position.
struct Decided {
  unsigned epoch = 0;
  policy::SampleId requested = 0;
  policy::Delivery delivery;
  uint64_t packages = 0;
};
using OnDecided = std::function<void(const Decided&)>;

// A sample's loss is constant unless `drift` is set: the share of the samples whose loss is redrawn
// in each epoch. The system knows a sample's loss from the last time that the sample was trained.
// `on_decided` (may be empty) is called for each request.
SystemOutcome play_system(const Synthetic& job, double drift, const policy::SystemInfo& system,
                          uint64_t memory, const OnDecided& on_decided = {});

// Like cost() of a policy; each package is one request.
Cost system_cost(const SystemCounts& counts, const Storage& storage);

// One line for each outcome: means per epoch, without the first.
std::string systems_table(std::span<const SystemOutcome> outcomes, const Workload& workload,
                          const Storage& storage);
// One line for each epoch of each outcome, with a heading; bytes and seconds.
std::string systems_csv(std::span<const SystemOutcome> outcomes, const Workload& workload,
                        const Storage& storage);

}  // namespace sluice::cli
