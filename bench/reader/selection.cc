// How long an epoch's questions take the optimizer's one thread, on which everybody else waits
// meanwhile: which samples of a large dataset are fetched, who is served for some of them, and what
// it means for what is kept that these were read.
//
// selection [SAMPLES]: prints one JSON object; for each of five epochs milliseconds of processor
// time (others may have the processor) of the selection, of the longest question of as many
// positions as one may have, and of the longest reading of as many.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "optimizer/importance/book.h"
#include "protocol/control.h"

namespace {

using namespace sluice;
using namespace sluice::optimizer;

constexpr uint32_t kBytes = 1 << 17;
constexpr unsigned kEpochs = 5;
constexpr double kShare = 0.2;  // of the dataset that may stay in memory

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void add(std::string* list, double value) {
  *list += (list->empty() ? "" : ", ") + std::to_string(value);
}

}  // namespace

int main(int argc, char** argv) {
  const auto samples = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 1'280'000);
  if (samples < protocol::kMostServed) {
    fprintf(stderr, "usage: selection [SAMPLES]\n");
    return 2;
  }
  ImportanceBook book;
  const ImportanceBook::Who who{
      .job = 1, .session = 1, .process = 1, .dataset = 1, .samples = samples};
  ImportanceOptions options;
  options.selection.warm_up = 0;
  options.selection.full_every = 0;
  options.stand_ins = ImportanceOptions::StandIns::kAny;
  const auto capacity = static_cast<uint64_t>(kShare * samples) * kBytes;
  const std::vector<uint8_t> candidates(samples, 1);
  Random random(mixed(1));
  std::string select_ms, serve_ms, read_ms;
  for (unsigned epoch = 0; epoch <= kEpochs; ++epoch) {
    for (uint32_t sample = 0; sample < samples; ++sample) {
      book.report(who, sample, -std::log(random.unit()));
    }
    double began = processor_ms();
    const std::vector<bool> chosen = book.select(who, epoch, options, candidates, capacity);
    // The first has nothing to go by yet, and makes what the others find.
    if (epoch > 0) add(&select_ms, processor_ms() - began);
    if (chosen.size() != samples) {
      fprintf(stderr, "selection: refused\n");
      return 1;
    }
    std::vector<SampleId> order;
    for (SampleId sample = 0; sample < samples; ++sample) {
      if (chosen[sample]) order.push_back(sample);
    }
    random.shuffle(&order);
    double longest = 0, longest_read = 0;
    for (size_t first = 0; first < order.size(); first += protocol::kMostServed) {
      const size_t count = std::min<size_t>(protocol::kMostServed, order.size() - first);
      if (!book.follows(who, epoch, first, count)) return 1;
      began = processor_ms();
      for (size_t i = first; i < first + count; ++i) {
        order[i] = book.serve(who, order[i], [](SampleId) { return uint64_t{kBytes}; }).sample;
      }
      longest = std::max(longest, processor_ms() - began);
      began = processor_ms();
      for (size_t i = first; i < first + count; ++i)
        book.on_read(who.session, who.process, who.dataset, order[i]);
      longest_read = std::max(longest_read, processor_ms() - began);
    }
    if (epoch == 0) continue;
    add(&serve_ms, longest);
    add(&read_ms, longest_read);
  }
  printf("{\"select_ms\": [%s], \"serve_ms\": [%s], \"read_ms\": [%s]}\n", select_ms.c_str(),
         serve_ms.c_str(), read_ms.c_str());
  return 0;
}
