// How long an epoch's questions take the optimizer: which samples of a large dataset are fetched,
// on a thread of its own; and on the one thread on which everybody else waits meanwhile, the
// beginning of an epoch with them, which samples are read for some of them, and what it means for
// what is retained that these were read.
//
// selection [SAMPLES [RANKS]]: RANKS of them (1) share the samples by chance.
// Prints one JSON object; for each of five epochs the most milliseconds of processor time (others
// may have the processor) that a rank's choice took, that its beginning took, the longest question
// of as many positions as one may have, and the longest reading of as many; and for all the most
// memory that the process came to, in bytes for each sample and rank.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/importance/book.h"
#include "protocol/control.h"

namespace {

using namespace sluice;
using namespace sluice::policy;

constexpr uint32_t kBytes = 1 << 17;
constexpr unsigned kEpochs = 5;
constexpr double kShare = 0.2;  // of the dataset that may stay in memory

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

struct Longest {
  double choose = 0, begin = 0, deliver = 0, read = 0;
};

// Adds what `work` took.
template <typename Work>
void timed(double* longest, const Work& work) {
  const double began = processor_ms();
  work();
  *longest = std::max(*longest, processor_ms() - began);
}

class Job {
 public:
  explicit Job(uint32_t samples) : samples_(samples) {
    options_.selection.warm_up = 0;
    options_.selection.full_every = 0;
    options_.substitution = ImportanceOptions::Substitution::kAny;
  }

  // All samples were trained.
  void report() {
    for (uint32_t sample = 0; sample < samples_; ++sample)
      book_.report(rank(0), sample, -std::log(random_.unit()));
  }

  // The rank reads its share. False: it was refused.
  bool epoch(uint32_t number, uint32_t epoch, std::vector<uint8_t> candidates, Longest* longest) {
    const ImportanceBook::Requester requester = rank(number);
    const auto capacity = static_cast<uint64_t>(kShare * samples_) * kBytes;
    std::shared_ptr<EpochChoice> choice;
    double asked = 0, begun = 0;
    timed(&asked,
          [&] { choice = book_.request(requester, epoch, options_, std::move(candidates)); });
    if (choice == nullptr) return false;
    timed(&longest->choose, [&] { choose(choice.get()); });
    timed(&begun, [&] { book_.begin(requester, choice, capacity); });
    longest->begin = std::max(longest->begin, asked + begun);
    std::vector<SampleId> order;
    for (SampleId sample = 0; sample < samples_; ++sample) {
      if (choice->chosen[sample]) order.push_back(sample);
    }
    random_.shuffle(&order);
    for (size_t first = 0; first < order.size(); first += protocol::kMostDelivered) {
      const size_t count = std::min<size_t>(protocol::kMostDelivered, order.size() - first);
      const auto some = std::span(order).subspan(first, count);
      if (!book_.follows(requester, epoch, first, count)) return false;
      timed(&longest->deliver, [&] {
        for (SampleId& sample : some)
          sample =
              book_.deliver(requester, sample, [](SampleId) { return uint64_t{kBytes}; }).sample;
      });
      timed(&longest->read, [&] {
        for (const SampleId sample : some)
          book_.on_read(requester.session, requester.process, requester.dataset, sample, true);
      });
    }
    return true;
  }

 private:
  ImportanceBook::Requester rank(uint32_t number) const {
    return {.job = 1,
            .session = SessionId{1},
            .process = 1 + number,
            .dataset = DatasetId{1},
            .samples = samples_};
  }

  const uint32_t samples_;
  ImportanceBook book_;
  ImportanceOptions options_;
  Random random_{mixed(1)};
};

// By rank, whose each sample is in that epoch.
std::vector<std::vector<uint8_t>> shares(uint32_t samples, uint32_t ranks, uint32_t epoch) {
  Random random(mixed(epoch));
  std::vector<std::vector<uint8_t>> all(ranks, std::vector<uint8_t>(samples));
  for (uint32_t sample = 0; sample < samples; ++sample) all[random.below(ranks)][sample] = 1;
  return all;
}

void add(std::string* list, double value) {
  *list += (list->empty() ? "" : ", ") + std::to_string(value);
}

}  // namespace

int main(int argc, char** argv) {
  const auto samples = static_cast<uint32_t>(argc > 1 ? strtoul(argv[1], nullptr, 10) : 1'280'000);
  const auto ranks = static_cast<uint32_t>(argc > 2 ? strtoul(argv[2], nullptr, 10) : 1);
  if (samples < protocol::kMostDelivered || ranks == 0) {
    fprintf(stderr, "usage: selection [SAMPLES [RANKS]]\n");
    return 2;
  }
  Job job(samples);
  std::string choose_ms, begin_ms, serve_ms, read_ms;
  for (uint32_t epoch = 0; epoch <= kEpochs; ++epoch) {
    job.report();
    Longest longest;
    uint32_t rank = 0;
    for (std::vector<uint8_t>& share : shares(samples, ranks, epoch)) {
      if (job.epoch(rank++, epoch, std::move(share), &longest)) continue;
      fprintf(stderr, "selection: refused\n");
      return 1;
    }
    if (epoch == 0) continue;  // it has nothing to go by yet, and makes what the others find
    add(&choose_ms, longest.choose);
    add(&begin_ms, longest.begin);
    add(&serve_ms, longest.deliver);
    add(&read_ms, longest.read);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  printf(
      "{\"select_ms\": [%s], \"begin_ms\": [%s], \"serve_ms\": [%s], \"read_ms\": [%s],"
      " \"bytes_each\": %.1f}\n",
      choose_ms.c_str(), begin_ms.c_str(), serve_ms.c_str(), read_ms.c_str(),
      static_cast<double>(usage.ru_maxrss) * 1024 / samples / ranks);
  return 0;
}
