#include <fmt/format.h>

#include "cli/simulate_output.h"
#include "cli/text.h"

namespace sluice::cli {

std::string memory_text(uint64_t memory, uint64_t dataset) {
  return fmt::format(
      "{} ({:.3g} %)", format_bytes(static_cast<double>(memory)),
      dataset == 0 ? 100.0 : 100.0 * static_cast<double>(memory) / static_cast<double>(dataset));
}

std::string simulate_table(std::span<const Outcome> outcomes, const Workload& workload,
                           const Storage& storage) {
  std::vector<std::vector<std::string>> rows = {
      {"policy", "memory", "hit ratio", "from storage", "requests", "reading", "stall"}};
  for (const Outcome& outcome : outcomes) {
    const Counts mean = outcome.steady();
    const Cost costs = cost(mean, storage, workload.jobs());
    rows.push_back({outcome.policy->name, memory_text(outcome.memory, workload.dataset_bytes()),
                    fmt::format("{:.4f}", mean.hit_ratio()), format_bytes(mean.fetched),
                    fmt::format("{:.0f}", mean.requests()), format_time(costs.reading * 1e9),
                    format_time(costs.stall * 1e9)});
  }
  return columns(rows, "lr");
}

std::string simulate_csv(std::span<const Outcome> outcomes, const Workload& workload,
                         const Storage& storage) {
  std::string text =
      "policy,memory_bytes,dataset_bytes,epoch,accesses,hits,hit_ratio,asked_bytes,storage_bytes,"
      "requests,reading_s,computing_s,stall_s\n";
  for (const Outcome& outcome : outcomes) {
    for (size_t round = 0; round < outcome.rounds.size(); ++round) {
      const Counts& counts = outcome.rounds[round];
      const Cost costs = cost(counts, storage, workload.jobs());
      text += fmt::format(
          "{},{},{},{},{:.0f},{:.0f},{:.6f},{:.0f},{:.0f},{:.0f},{:.6f},{:.6f},{:.6f}\n",
          outcome.policy->name, outcome.memory, workload.dataset_bytes(), round, counts.accesses,
          counts.hits, counts.hit_ratio(), counts.asked, counts.fetched, counts.requests(),
          costs.reading, costs.computing, costs.stall);
    }
  }
  return text;
}

}  // namespace sluice::cli
