// Two trainings that share a cache: how long they take together if it keeps what matters to both
// (adjusted importance, iCache section III-D), over the better of keeping what matters to one of
// them. Simulated: the code decides, and time is counted.
//
// two_jobs [SEED]: prints one JSON object; seconds of both jobs together, by whose importances the
// cache keeps.
//
// A batch takes as long as its computing or its reading, whichever is longer: six workers read what
// is not in memory, each a sample in 6.5 ms (what three round trips of 2 ms and 100 KB take). One
// job computes a batch in 40 ms, the other in 80 ms: both wait for storage, or there was nothing to
// gain. Half of what a sample matters to one it matters to the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "optimizer/importance/icache_system.h"
#include "optimizer/importance/jobs.h"
#include "optimizer/importance/values.h"

namespace {

using namespace sluice;
using namespace sluice::optimizer;

constexpr uint32_t kSamples = 50'000, kBatch = 256, kEpochs = 24, kBytes = 100'000;
constexpr double kShare = 0.2, kReadSeconds = 0.0065, kWorkers = 6;
constexpr double kCompute[] = {0.040, 0.080};
constexpr uint32_t kJobs = 2;

// kProbed: both, as far as they gain, which 20 uncached batches find out in every epoch.
enum class Keep { kFirst, kSecond, kBoth, kProbed };

std::vector<float> losses_of(Random* random, const std::vector<float>& common) {
  std::vector<float> losses(kSamples);
  for (uint32_t i = 0; i < kSamples; ++i) {
    losses[i] = common[i] + static_cast<float>(-std::log(random->unit()));
  }
  return losses;
}

struct Job {
  explicit Job(std::vector<float> own) : losses(std::move(own)), values(kSamples) {}
  const std::vector<float> losses;
  ImportanceValues values;
  BenefitProbe probe;
  std::vector<SampleId> order;  // of the present epoch
  size_t at = 0;
  uint32_t epoch = 0;
  double clock = 0;
  bool done() const { return epoch == kEpochs && at == order.size(); }
};

void begin_epoch(ICacheSystem* system, Random* random, Job* job, uint32_t number, bool several) {
  const std::vector<bool> chosen = system->begin_epoch(number, job->epoch++, job->values.all());
  job->order.clear();
  for (SampleId sample = 0; sample < kSamples; ++sample) {
    if (chosen[sample]) job->order.push_back(sample);
  }
  random->shuffle(&job->order);
  job->at = 0;
  job->probe.begin_epoch(several);
}

void run_batch(ICacheSystem* system, Job* job, uint32_t number) {
  const size_t end = std::min(job->at + kBatch, job->order.size());
  const auto size = static_cast<double>(end - job->at);
  double missed = 0;
  for (; job->at < end; ++job->at) {
    const Answer answer = system->request(number, job->order[job->at], kBytes);
    job->values.observe(answer.sample, job->losses[answer.sample]);
    missed += answer.how == Served::kMiss || answer.how == Served::kMissOther ? 1 : 0;
  }
  if (job->probe.phase() == BenefitProbe::Phase::kUncached) missed = size;
  const double seconds =
      std::max(kCompute[number] * size / kBatch, missed * kReadSeconds / kWorkers);
  job->clock += seconds;
  const bool probing = job->probe.phase() != BenefitProbe::Phase::kDone;
  job->probe.batch(seconds);
  if (probing && job->probe.phase() == BenefitProbe::Phase::kDone) {
    system->set_benefit(number, job->probe.benefit());
  }
}

double seconds_of(uint64_t seed, Keep keep) {
  Random random(mixed(seed));
  std::vector<float> common(kSamples);
  for (float& loss : common) loss = static_cast<float>(-std::log(random.unit()));
  std::vector<Job> jobs;
  for (uint32_t i = 0; i < kJobs; ++i) jobs.emplace_back(losses_of(&random, common));
  ICacheSystem system({.capacity = static_cast<uint64_t>(kShare * kSamples) * kBytes,
                       .samples = kSamples,
                       .reads_packages = false,
                       .seed = seed},
                      Substitute::kL, true);
  for (uint32_t i = 0; i < kJobs; ++i) {
    begin_epoch(&system, &random, &jobs[i], i, keep == Keep::kProbed);
    if (keep == Keep::kFirst) system.set_benefit(i, i == 0 ? 2 : 0);
    if (keep == Keep::kSecond) system.set_benefit(i, i == 1 ? 2 : 0);
  }
  while (!jobs[0].done() || !jobs[1].done()) {
    const uint32_t next =
        jobs[0].done() || (!jobs[1].done() && jobs[1].clock < jobs[0].clock) ? 1 : 0;
    Job& job = jobs[next];
    if (job.at == job.order.size()) {
      const bool both = !jobs[0].done() && !jobs[1].done();
      begin_epoch(&system, &random, &job, next, both && keep == Keep::kProbed);
    } else {
      run_batch(&system, &job, next);
    }
    if (job.done()) system.end_job(next);
  }
  return jobs[0].clock + jobs[1].clock;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  printf("{\"first\": %.3f, \"second\": %.3f, \"both\": %.3f, \"probed\": %.3f}\n",
         seconds_of(seed, Keep::kFirst), seconds_of(seed, Keep::kSecond),
         seconds_of(seed, Keep::kBoth), seconds_of(seed, Keep::kProbed));
  return 0;
}
