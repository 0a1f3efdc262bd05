// Runs a policy over a workload and says what that costs on a storage. Pure but for the workload.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/simulate_workload.h"
#include "policy/replacement/table.h"

namespace sluice::cli {

// What happened in one round, or in several.
struct Counts {
  double accesses = 0, hits = 0;
  double asked = 0, fetched = 0;  // bytes wanted, and of them from storage

  double requests() const { return accesses - hits; }
  double hit_ratio() const { return accesses == 0 ? 0 : hits / accesses; }
  Counts& operator+=(const Counts& other);
  Counts& operator*=(double factor);
};

struct Outcome {
  const optimizer::PolicyInfo* policy = nullptr;
  uint64_t memory = 0;         // bytes
  std::vector<Counts> rounds;  // never empty
  // Mean of the rounds but the first, in which the cache fills; of the first if there is no other.
  Counts steady() const;
};

// A policy that wants the order is told one round ahead of the present one.
Outcome play(Workload* workload, const optimizer::PolicyInfo& policy, uint64_t memory);

// A storage, and a job that computes while it reads. Seconds and bytes.
struct Storage {
  double latency = 0.002;        // of one request
  double bandwidth = 200 << 20;  // bytes a second, all requests together
  unsigned depth = 4;            // requests under way at a time
  double compute = 0;            // of one sample
};

struct Cost {
  double reading = 0;    // seconds that storage needs
  double computing = 0;  // seconds that each job needs without storage
  double stall = 0;      // what is left of `reading` where computing does not cover it
};

// Reading takes as long as the slower of two needs: requests / depth times latency, and bytes
// through the bandwidth. It overlaps with computing perfectly, so the stall is the least possible.
Cost cost(const Counts& counts, const Storage& storage, unsigned jobs);

}  // namespace sluice::cli
