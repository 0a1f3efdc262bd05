#include "cli/simulate_systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/simulate_output.h"
#include "cli/text.h"
#include "policy/importance/values.h"
#include "policy/util/random.h"

namespace sluice::cli {
namespace {

using policy::Delivery;
using policy::DeliveryKind;
using policy::SampleId;

double& part(SystemCounts* counts, DeliveryKind kind) {
  return counts->deliveries[static_cast<size_t>(kind)];
}

// A distribution of losses as in training: many small ones and few large ones. Only their order
// matters, not their scale.
class Losses {
 public:
  Losses(const Synthetic& job, double drift)
      : random_(mixed(job.seed ^ 0x1055)), drift_(drift), losses_(job.samples) {
    for (float& loss : losses_) loss = draw();
  }
  void next_epoch() {
    if (drift_ <= 0) return;
    for (float& loss : losses_) {
      if (random_.unit() < drift_) loss = draw();
    }
  }
  float of(SampleId sample) const { return losses_[sample]; }

 private:
  float draw() { return static_cast<float>(-std::log(random_.unit())); }
  Random random_;
  const double drift_;
  std::vector<float> losses_;
};

}  // namespace

double SystemCounts::share(DeliveryKind kind) const {
  return requests == 0 ? 0 : deliveries[static_cast<size_t>(kind)] / requests;
}

double SystemCounts::hit_ratio() const {
  return requests == 0 ? 0 : 1 - share(DeliveryKind::kMiss) - share(DeliveryKind::kMissOther);
}

double SystemCounts::single_reads() const { return requests * (1 - hit_ratio()) - in_packages; }

SystemCounts& SystemCounts::add(const SystemCounts& other, double factor) {
  requests += factor * other.requests;
  asked += factor * other.asked;
  for (size_t kind = 0; kind < deliveries.size(); ++kind)
    deliveries[kind] += factor * other.deliveries[kind];
  missed += factor * other.missed;
  in_packages += factor * other.in_packages;
  packages += factor * other.packages;
  packed += factor * other.packed;
  useful += factor * other.useful;
  written += factor * other.written;
  return *this;
}

SystemOutcome play_system(const Synthetic& job, double drift, const policy::SystemInfo& info,
                          uint64_t memory, const OnDecided& on_decided) {
  SystemOutcome outcome{&info, memory, {}};
  // The order of an epoch is the workload's without the samples that are not selected: what a job's
  // own sampler would draw.
  const std::unique_ptr<Workload> workload = make_synthetic(job);
  std::vector<uint32_t> bytes(job.samples);
  for (const Access& access : workload->round(0)) {
    bytes[access.sample] = static_cast<uint32_t>(access.bytes);
  }
  const auto system = info.make({.capacity = memory,
                                 .samples = job.samples,
                                 .bytes = bytes,
                                 .selection = {.seed = job.seed},
                                 .seed = job.seed});
  Losses losses(job, drift);
  policy::ImportanceValues values(job.samples);
  for (unsigned epoch = 0; epoch < job.epochs; ++epoch) {
    if (epoch != 0) losses.next_epoch();
    const std::vector<bool> chosen = system->begin_epoch(0, epoch, values.all());
    SystemCounts counts;
    for (const Access& access : workload->round(epoch)) {
      if (!chosen[access.sample]) continue;
      const Delivery delivery =
          system->request(0, access.sample, static_cast<uint32_t>(access.bytes));
      const auto loss = static_cast<float>(losses.of(delivery.sample));
      values.observe(delivery.sample, loss);
      system->observe(0, delivery.sample, loss);
      ++counts.requests;
      counts.asked += static_cast<double>(access.bytes);
      ++part(&counts, delivery.kind);
      if (delivery.in_package) {
        ++counts.in_packages;
      } else if (delivery.kind == DeliveryKind::kMiss ||
                 delivery.kind == DeliveryKind::kMissOther) {
        counts.missed += static_cast<double>(bytes[delivery.sample]);
      }
      const policy::Background behind = system->background();
      counts.packages += static_cast<double>(behind.packages);
      counts.packed += static_cast<double>(behind.bytes);
      counts.useful += static_cast<double>(behind.useful_bytes);
      counts.written += static_cast<double>(behind.written_bytes);
      if (on_decided) on_decided({epoch, access.sample, delivery, behind.packages});
    }
    outcome.epochs.push_back(counts);
  }
  return outcome;
}

Cost system_cost(const SystemCounts& counts, const Storage& storage) {
  Counts both;
  both.accesses = counts.requests;
  both.hits = counts.requests - counts.single_reads() - counts.packages;
  both.fetched = counts.missed + counts.packed;
  return cost(both, storage, 1);
}

std::string systems_table(std::span<const SystemOutcome> outcomes, const Workload& workload,
                          const Storage& storage) {
  std::vector<std::vector<std::string>> rows = {
      {"system", "memory", "requested", "hit ratio", "H", "L exact", "substituted", "from storage",
       "requests", "packages", "useful", "reading", "stall"}};
  const auto samples = static_cast<double>(workload.samples());
  for (const SystemOutcome& outcome : outcomes) {
    const SystemCounts mean = outcome.steady();
    const Cost costs = system_cost(mean, storage);
    const double others = mean.share(DeliveryKind::kSubstituted) + mean.share(DeliveryKind::kHForL);
    rows.push_back(
        {outcome.system->name, memory_text(outcome.memory, workload.dataset_bytes()),
         fmt::format("{:.3f}", mean.requests / samples), fmt::format("{:.4f}", mean.hit_ratio()),
         fmt::format("{:.4f}", mean.share(DeliveryKind::kHHit)),
         fmt::format("{:.4f}", mean.share(DeliveryKind::kLExact)), fmt::format("{:.4f}", others),
         format_bytes(mean.missed + mean.packed),
         fmt::format("{:.0f}", mean.single_reads() + mean.packages),
         fmt::format("{:.0f}", mean.packages),
         mean.packed == 0 ? "-" : fmt::format("{:.0f} %", 100 * mean.useful / mean.packed),
         format_time(costs.reading * 1e9), format_time(costs.stall * 1e9)});
  }
  return columns(rows, "lr");
}

std::string systems_csv(std::span<const SystemOutcome> outcomes, const Workload& workload,
                        const Storage& storage) {
  std::string text =
      "system,memory_bytes,dataset_bytes,dataset_samples,epoch,requests,h_hits,l_exact,substituted,"
      "h_for_l,misses,misses_other,hit_ratio,asked_bytes,missed_bytes,misses_in_packages,packages,"
      "package_bytes,"
      "package_useful_bytes,written_bytes,reading_s,computing_s,stall_s\n";
  for (const SystemOutcome& outcome : outcomes) {
    for (size_t epoch = 0; epoch < outcome.epochs.size(); ++epoch) {
      const SystemCounts& counts = outcome.epochs[epoch];
      const Cost costs = system_cost(counts, storage);
      text += fmt::format("{},{},{},{},{},{:.0f}", outcome.system->name, outcome.memory,
                          workload.dataset_bytes(), workload.samples(), epoch, counts.requests);
      for (const double count : counts.deliveries) text += fmt::format(",{:.0f}", count);
      text += fmt::format(
          ",{:.6f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.6f},{:.6f},{:.6f}\n",
          counts.hit_ratio(), counts.asked, counts.missed, counts.in_packages, counts.packages,
          counts.packed, counts.useful, counts.written, costs.reading, costs.computing,
          costs.stall);
    }
  }
  return text;
}

}  // namespace sluice::cli
