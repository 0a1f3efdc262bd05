// What it costs to know where the samples of a large dataset lie in LCache's two logs (section
// III-C: the MetaIndex, its two instances).
//
// log-plan [SAMPLES]: an epoch in a random order is read whole, chunk after chunk, while what it
// reads is written for the next one. Prints one JSON object: seconds of processor time that the
// index of an order took to build, for either log; the most microseconds of it that a batch of
// kBatch samples took; and bytes of memory for each sample, with the sizes that it needs.
#include "policy/chunks/log_plan.h"

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "policy/util/random.h"

namespace {

using namespace sluice;
using namespace sluice::policy;

constexpr uint32_t kBytes = 100'000, kChunk = 40 * kBytes, kBatch = 256, kLeast = 10'000;

double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

uint64_t resident_bytes() {
  char text[256] = "";  // pages: all, resident, ...
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fgets(text, sizeof text, file) == nullptr) exit(1);
  fclose(file);
  char* rest = text;
  strtoul(text, &rest, 10);
  return strtoul(rest, nullptr, 10) * LogIndex::kBlock;
}

double begin_epoch_s(LogPlan* plan, std::span<const SampleId> order) {
  const double began = processor_s();
  plan->begin_epoch(order);
  return processor_s() - began;
}

// The longest batch, in seconds.
double read_all(LogPlan* plan, std::span<const SampleId> order) {
  double longest = 0;
  for (size_t first = 0; first < order.size(); first += kBatch) {
    const double began = processor_s();
    const auto batch = order.subspan(first, std::min<size_t>(kBatch, order.size() - first));
    plan->reads(batch);
    plan->consumed(batch);
    longest = std::max(longest, processor_s() - began);
  }
  return longest;
}

}  // namespace

int main(int argc, char** argv) {
  const auto samples = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 14'000'000);
  if (samples < kLeast) {
    fprintf(stderr, "usage: log-plan [SAMPLES]\n");
    return 2;
  }
  Random random(mixed(1));
  std::vector<std::vector<SampleId>> orders(3, std::vector<SampleId>(samples));
  for (std::vector<SampleId>& order : orders) {
    std::iota(order.begin(), order.end(), 0U);
    random.shuffle(&order);
  }
  const uint64_t before = resident_bytes();
  const std::vector<uint32_t> bytes(samples, kBytes);
  LogPlan plan(bytes, kChunk, uint64_t{2} * samples * (kBytes + LogIndex::kBlock));
  const double first = begin_epoch_s(&plan, orders[1]);
  read_all(&plan, orders[0]);
  const double second = begin_epoch_s(&plan, orders[2]);
  const double longest = read_all(&plan, orders[1]);
  const uint64_t after = resident_bytes();
  if (plan.log(plan.current() ^ 1).samples() != samples) {
    fprintf(stderr, "log-plan: the next log has no place for some samples\n");
    return 1;
  }
  printf("{\"build_s\": [%.3f, %.3f], \"batch_us\": %.1f, \"bytes_per_sample\": %.1f}\n", first,
         second, longest * 1e6, static_cast<double>(after - before) / samples);
  return 0;
}
