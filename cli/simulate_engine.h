// Runs a policy over a workload and computes its cost on a storage. Pure except for the workload.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/simulate_workload.h"
#include "policy/replacement/table.h"

namespace sluice::cli {

// The result of one round, or of several.
struct Counts {
  double accesses = 0, hits = 0;
  double asked = 0, fetched = 0;  // bytes requested, and of these read from storage

  double requests() const { return accesses - hits; }
  double hit_ratio() const { return accesses == 0 ? 0 : hits / accesses; }
  // Adds `factor` times the other.
  Counts& add(const Counts& other, double factor = 1);
};

// The mean of all rounds but the first, in which the cache fills; the first if it is the only one.
template <typename OfRound>
OfRound mean_of_later(const std::vector<OfRound>& rounds) {
  if (rounds.size() == 1) return rounds[0];
  OfRound sum;
  for (size_t round = 1; round < rounds.size(); ++round) sum.add(rounds[round]);
  return OfRound().add(sum, 1.0 / static_cast<double>(rounds.size() - 1));
}

struct Outcome {
  const policy::PolicyInfo* policy = nullptr;
  uint64_t memory = 0;         // bytes
  std::vector<Counts> rounds;  // never empty
  Counts steady() const { return mean_of_later(rounds); }
};

// A policy that uses the order is given it one round ahead of the running one.
Outcome play(Workload* workload, const policy::PolicyInfo& policy, uint64_t memory);

// A storage, and a job that computes while data is read. Seconds and bytes.
struct Storage {
  double latency = 0.002;        // of one request
  double bandwidth = 200 << 20;  // bytes a second, of all requests together
  unsigned depth = 4;            // requests in flight at a time
  double compute = 0;            // of one sample
};

struct Cost {
  double reading = 0;    // seconds that storage needs
  double computing = 0;  // seconds that each job needs without storage
  double stall = 0;      // the part of `reading` that does not overlap with computing
};

// Reading takes as long as the slower of two: requests / depth times latency, and bytes through the
// bandwidth. It overlaps perfectly with computing, so the stall is the least possible.
Cost cost(const Counts& counts, const Storage& storage, unsigned jobs);

}  // namespace sluice::cli
