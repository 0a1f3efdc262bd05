// Simulates a ladder of memory sizes, and derives advice.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/simulate_output.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr double kLadder[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1};  // of the dataset
constexpr uint32_t kEnoughSamples = 100'000;  // hit ratios then differ in the third digit only
constexpr unsigned kEnoughEpochs = 4;
constexpr double kAlike = 0.01;       // policies that differ by less count as equal
constexpr double kNegligible = 0.01;  // stall as a fraction of an epoch's time

struct Step {
  uint64_t memory = 0;  // of the user's dataset
  const policy::PolicyInfo* policy = nullptr;
  std::string as_good;  // names of equally good policies
  Counts counts;        // of an epoch of the user's dataset
  Cost costs;
  double time() const { return costs.computing + costs.stall; }
  bool stalls() const { return costs.stall > kNegligible * time(); }
};

// The simplest policy first: of equally good ones, the one that needs least information is advised.
unsigned demands(const policy::PolicyInfo& policy) {
  const std::string_view name = policy.name;
  return policy.wants_order ? 2 : (name == "minio" || name == "lru" ? 0 : 1);
}

Step best_of(const std::vector<Outcome>& outcomes) {
  double least = outcomes[0].steady().fetched;
  for (const Outcome& outcome : outcomes) least = std::min(least, outcome.steady().fetched);
  std::vector<const Outcome*> good;
  for (const Outcome& outcome : outcomes) {
    const Counts counts = outcome.steady();
    if (counts.fetched <= least + kAlike * counts.asked) good.push_back(&outcome);
  }
  std::stable_sort(good.begin(), good.end(), [](const Outcome* one, const Outcome* other) {
    return demands(*one->policy) < demands(*other->policy);
  });
  Step step;
  step.policy = good[0]->policy;
  step.counts = good[0]->steady();
  for (size_t at = 1; at < good.size(); ++at) {
    step.as_good += std::string(at > 1 ? ", " : "") + good[at]->policy->name;
  }
  return step;
}

std::string share_text(const Step& step, uint64_t dataset) {
  return fmt::format("{} ({:.0f} %)", format_bytes(static_cast<double>(step.memory)),
                     100.0 * static_cast<double>(step.memory) / static_cast<double>(dataset));
}

std::string sentences(const std::vector<Step>& steps, uint64_t dataset, unsigned depth) {
  const auto enough =
      std::find_if(steps.begin(), steps.end(), [](const Step& step) { return !step.stalls(); });
  const Step& chosen = enough == steps.end() ? steps.back() : *enough;
  std::string text = "\n";
  const Step& least = steps.front();
  if (enough == steps.begin()) {
    text += fmt::format("No stall with {} already: more memory buys nothing at this depth of {}.\n",
                        share_text(chosen, dataset), depth);
  } else if (enough == steps.end()) {
    text += fmt::format("Even with {} an epoch stalls for {}.\n", share_text(chosen, dataset),
                        format_time(chosen.costs.stall * 1e9));
  } else {
    text += fmt::format("No stall from {} on, with {}; with {} an epoch stalls for {}.\n",
                        share_text(chosen, dataset), chosen.policy->name,
                        share_text(least, dataset), format_time(least.costs.stall * 1e9));
  }
  const Step* best = nullptr;
  double most = 0;
  for (size_t at = 1; at < steps.size(); ++at) {
    const double gibibytes =
        static_cast<double>(steps[at].memory - steps[at - 1].memory) / (1 << 30);
    if (gibibytes <= 0) continue;
    const double bought = (steps[at - 1].costs.stall - steps[at].costs.stall) / gibibytes;
    if (bought > most) {
      most = bought;
      best = &steps[at];
    }
  }
  if (best != nullptr) {
    text +=
        fmt::format("Memory buys most on the way to {}: {} less stall in an epoch for each GiB.\n",
                    share_text(*best, dataset), format_time(most * 1e9));
  }
  text += fmt::format("Advice: --memory {} --policy {}\n",
                      chosen.memory >> 20 == 0 ? fmt::format("{}", chosen.memory)
                                               : fmt::format("{}M", (chosen.memory >> 20) + 1),
                      chosen.policy->name);
  return text;
}

}  // namespace

std::string simulate_advice(const SimulateSettings& settings, Workload* workload) {
  std::unique_ptr<Workload> smaller;
  double scale = 1;
  Synthetic synthetic = settings.synthetic;
  if (settings.trace.empty() &&
      (synthetic.samples > kEnoughSamples || synthetic.epochs > kEnoughEpochs)) {
    synthetic.samples = std::min(synthetic.samples, kEnoughSamples);
    synthetic.epochs = std::min(synthetic.epochs, kEnoughEpochs);
    smaller = make_synthetic(synthetic);
    scale = static_cast<double>(workload->samples()) / synthetic.samples;
  }
  Workload* const played = smaller ? smaller.get() : workload;
  const uint64_t dataset = std::max<uint64_t>(workload->dataset_bytes(), 1);
  std::vector<Step> steps;
  for (const double share : kLadder) {
    std::vector<Outcome> outcomes;
    for (const policy::PolicyInfo* policy : settings.policies) {
      const auto memory =
          static_cast<uint64_t>(std::llround(share * static_cast<double>(played->dataset_bytes())));
      outcomes.push_back(play(played, *policy, memory));
    }
    Step step = best_of(outcomes);
    step.memory = static_cast<uint64_t>(std::llround(share * static_cast<double>(dataset)));
    step.counts = Counts().add(step.counts, scale);
    step.costs = cost(step.counts, settings.storage, workload->jobs());
    steps.push_back(step);
  }
  std::vector<std::vector<std::string>> rows = {
      {"memory", "policy", "hit ratio", "from storage", "stall", "as good"}};
  for (const Step& step : steps) {
    rows.push_back({share_text(step, dataset), step.policy->name,
                    fmt::format("{:.3f}", step.counts.hit_ratio()),
                    format_bytes(step.counts.fetched), format_time(step.costs.stall * 1e9),
                    step.as_good});
  }
  return columns(rows, "llrrrl") + sentences(steps, dataset, settings.storage.depth);
}

}  // namespace sluice::cli
