// How long a request for a sample waits at most while a new H-list is taken over: a million
// retained samples are sorted anew by what they matter now, some with each request, so that none
// waits.
//
// swap [SAMPLES]: prints one JSON object; the longest request while a list is taken over, for each
// of five lists, and the longest while none is, in microseconds of processor time (others may have
// the processor), and how many requests a take-over lasted.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "policy/importance/icache.h"

namespace {

using namespace sluice;
using namespace sluice::policy;

constexpr uint32_t kBytes = 1 << 17;
constexpr unsigned kSwaps = 5;

uint64_t processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::shared_ptr<const HList> list_of(uint32_t samples, uint64_t seed) {
  Random random(mixed(seed));
  std::vector<HListEntry> entries;
  entries.reserve(samples);
  for (uint32_t sample = 0; sample < samples; ++sample) {
    entries.push_back({sample, -std::log(random.unit())});
  }
  return std::make_shared<const HList>(samples, entries);
}

}  // namespace

int main(int argc, char** argv) {
  const auto samples = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 1'280'000);
  if (samples == 0) {
    fprintf(stderr, "usage: swap [SAMPLES]\n");
    return 2;
  }
  // All of them are retained: the largest heap that a list of so many entries can make.
  ICache cache({.capacity = uint64_t{2} * samples * kBytes, .samples = samples});
  std::vector<SampleId> evicted;
  std::shared_ptr<const HList> list = list_of(samples, 1);
  cache.begin_epoch(0, list, &evicted);
  cache.set_cache_list(list);
  for (SampleId sample = 0; sample < samples; ++sample) {
    cache.request(0, sample, kBytes, &evicted);
  }
  Random random(mixed(7));
  uint64_t otherwise = 0, during = 0;
  std::string each;
  for (unsigned swap = 0; swap < kSwaps; ++swap) {
    list = list_of(samples, swap + 2);
    cache.begin_epoch(0, list, &evicted);
    const uint64_t swaps = cache.h_cache().swaps();
    bool taking_over = true;
    uint64_t longest = 0;
    for (uint64_t i = 0; i < 2 * during + 100'000; ++i) {
      const SampleId sample = random.below(samples);
      const uint64_t began = processor_ns();
      if (i == 0) cache.set_cache_list(list);
      cache.request(0, sample, kBytes, &evicted);
      uint64_t& most = taking_over ? longest : otherwise;
      most = std::max(most, processor_ns() - began);
      if (taking_over && cache.h_cache().swaps() != swaps) {
        taking_over = false;
        during = i;
      }
    }
    if (taking_over) {
      fprintf(stderr, "swap: the list was not taken over\n");
      return 1;
    }
    each += (each.empty() ? "" : ", ") + std::to_string(static_cast<double>(longest) / 1e3);
  }
  printf("{\"longest_us\": [%s], \"otherwise_us\": %.1f, \"requests\": %llu}\n", each.c_str(),
         static_cast<double>(otherwise) / 1e3, static_cast<unsigned long long>(during));
  return 0;
}
