#include "cli/simulate_engine.h"

#include <algorithm>
#include <array>

namespace sluice::cli {
namespace {

void pass_order(policy::Policy* policy, std::span<const Access> accesses) {
  std::array<policy::SampleId, 4096> order{};
  while (!accesses.empty()) {
    const size_t count = std::min(order.size(), accesses.size());
    std::transform(accesses.begin(), accesses.begin() + static_cast<std::ptrdiff_t>(count),
                   order.begin(), [](const Access& access) { return access.sample; });
    policy->append_order({order.data(), count});
    accesses = accesses.subspan(count);
  }
}

}  // namespace

Counts& Counts::add(const Counts& other, double factor) {
  accesses += factor * other.accesses;
  hits += factor * other.hits;
  asked += factor * other.asked;
  fetched += factor * other.fetched;
  return *this;
}

Outcome play(Workload* workload, const policy::PolicyInfo& info, uint64_t memory) {
  Outcome outcome{&info, memory, {}};
  const auto policy = info.make(memory, workload->samples());
  std::vector<policy::SampleId> evicted;
  if (info.wants_order) pass_order(policy.get(), workload->round(0));
  for (unsigned round = 0; round < workload->rounds(); ++round) {
    const std::span<const Access> accesses = workload->round(round);
    if (info.wants_order && round + 1 < workload->rounds()) {
      pass_order(policy.get(), workload->round(round + 1));
    }
    uint64_t hits = 0, asked = 0, fetched = 0;
    for (const Access& access : accesses) {
      if (access.begins_epoch) policy->begin_epoch(access.job);
      asked += access.bytes;
      if (policy->access(access.job, access.sample, access.bytes, &evicted) ==
          policy::Decision::kHit) {
        ++hits;
      } else {
        fetched += access.bytes;
      }
    }
    outcome.rounds.push_back({static_cast<double>(accesses.size()), static_cast<double>(hits),
                              static_cast<double>(asked), static_cast<double>(fetched)});
  }
  return outcome;
}

Cost cost(const Counts& counts, const Storage& storage, unsigned jobs) {
  Cost cost;
  if (counts.requests() > 0) {
    const double turns = std::max(counts.requests() / storage.depth, 1.0);
    cost.reading = std::max(turns * storage.latency, counts.fetched / storage.bandwidth);
  }
  cost.computing = counts.accesses / jobs * storage.compute;
  cost.stall = std::max(cost.reading - cost.computing, 0.0);
  return cost;
}

}  // namespace sluice::cli
