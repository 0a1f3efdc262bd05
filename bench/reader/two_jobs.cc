// Two trainings that share what is in memory: how long they take together by which samples stay
// there. Simulated: what is chosen, delivered and retained is decided by the code that decides it
// live, as it is called there, and time is counted.
//
// two_jobs [SEED]: prints one JSON object; seconds of both jobs together, by what was retained:
//   first, second   what matters to one of them (the paper's INDA and INDB)
//   both            what matters to both, by adjusted importance (iCache, section III-D)
//   probed          the same, weighted with what 20 uncached batches of each epoch find out, as
//   published orders          by adjusted importance too, but first of all what the other job is
//   known to read first_orders, second_orders   likewise, with one job's importance known what is
//   known to be read, and nothing of importance
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
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "policy/importance/book.h"
#include "policy/importance/jobs.h"
#include "policy/replacement/table.h"
#include "policy/samples/sample_book.h"
#include "policy/util/random.h"

namespace {

using namespace sluice;
using namespace sluice::policy;

constexpr uint32_t kSamples = 50'000, kBatch = 256, kEpochs = 24, kBytes = 100'000;
constexpr double kShare = 0.2, kReadSeconds = 0.0065, kWorkers = 6;
constexpr double kCompute[] = {0.040, 0.080};
constexpr uint32_t kJobs = 2;
// Positions of one request for decisions, and how many of them are left when the next is sent
// (adapters/pytorch/sluice_torch/delivery.py).
constexpr size_t kTogether = 1 << 14, kAhead = kTogether / 2;

struct Variant {
  const char* name;
  const char* policy;
  double benefit[kJobs];  // 0 for both: none is reported
  bool probed;
};

constexpr Variant kVariants[] = {
    {"first", "shade", {2, 0}, false},          {"second", "shade", {0, 2}, false},
    {"both", "shade", {0, 0}, false},           {"probed", "shade", {0, 0}, true},
    {"orders", "needed", {0, 0}, false},        {"first_orders", "needed", {2, 0}, false},
    {"second_orders", "needed", {0, 2}, false}, {"known", "belady", {0, 0}, false},
};

struct Job {
  ImportanceBook::Requester requester;
  std::vector<float> losses;
  BenefitProbe probe;
  std::vector<uint32_t> requested, delivered;  // of the present epoch, by position
  size_t at = 0;
  uint32_t epoch = 0;  // that comes next
  double clock = 0;
  bool done() const { return epoch == kEpochs && at == requested.size(); }
};

class Run {
 public:
  Run(const Variant& variant, uint64_t seed);
  double seconds();

 private:
  void begin_epoch(Job* job);
  void ask(Job* job);
  void run_batch(Job* job);
  void predict();
  void retain_by(const char* policy);
  Job& other(const Job& job) { return jobs_[job.requester.job % kJobs]; }

  const Variant& variant_;
  const uint64_t capacity_ = static_cast<uint64_t>(kShare * kSamples) * kBytes;
  Random random_;
  std::vector<Job> jobs_;
  ImportanceBook book_;
  ImportanceOptions options_;
  SampleBook orders_;
  DatasetId dataset_{};
  std::unique_ptr<Policy> memory_;
  std::vector<SampleId> evicted_;
  bool orders_new_ = false;
};

Run::Run(const Variant& variant, uint64_t seed)
    : variant_(variant),
      random_(mixed(seed)),
      memory_(find_policy(variant.policy)->make(capacity_, kSamples)) {
  options_.substitution = ImportanceOptions::Substitution::kAny;
  options_.selection.seed = seed;
  const auto loss = [this] { return static_cast<float>(-std::log(random_.unit())); };
  std::vector<float> common(kSamples);
  std::generate(common.begin(), common.end(), loss);
  for (uint32_t number = 1; number <= kJobs; ++number) {
    Job& job = jobs_.emplace_back();
    dataset_ = orders_.use(SessionId{number}, "dataset", kSamples);
    job.requester = {number, SessionId{number}, number, dataset_, kSamples};
    for (const float shared : common) job.losses.push_back(shared + loss());
  }
}

void Run::begin_epoch(Job* job) {
  const double benefit = variant_.benefit[job->requester.job - 1];
  const bool reported = variant_.benefit[0] + variant_.benefit[1] > 0;
  // Without effect before the first epoch, which knows no importance.
  if (reported) book_.set_benefit(job->requester, benefit);
  const auto choice = book_.request(job->requester, job->epoch, options_, {});
  choose(choice.get());
  book_.begin(job->requester, choice, capacity_);
  if (reported && job->epoch == 0) book_.set_benefit(job->requester, benefit);
  job->requested.clear();
  for (SampleId sample = 0; sample < kSamples; ++sample) {
    if (choice->chosen[sample]) job->requested.push_back(sample);
  }
  random_.shuffle(&job->requested);
  job->delivered.clear();
  job->at = 0;
  ++job->epoch;
  ask(job);
  job->probe.begin_epoch(variant_.probed && !other(*job).done());
}

// The samples of the next positions, which the job then publishes as its order.
void Run::ask(Job* job) {
  const size_t first = job->delivered.size();
  const size_t count = std::min(kTogether, job->requested.size() - first);
  const uint32_t epoch = job->epoch - 1;
  if (count == 0 || !book_.follows(job->requester, epoch, first, count)) return;
  if (book_.shares(job->requester.session)) {
    book_.drop_absent(dataset_, [this](SampleId sample) { return memory_->retained(sample); });
  }
  for (size_t at = first; at < first + count; ++at) {
    const auto bytes = [](SampleId) { return uint64_t{kBytes}; };
    job->delivered.push_back(book_.deliver(job->requester, job->requested[at], bytes).sample);
  }
  orders_.publish(job->requester.session, dataset_, epoch, first,
                  std::span(job->delivered).subspan(first, count));
  orders_new_ = true;
}

void Run::predict() {
  if (!orders_new_) return;
  orders_new_ = false;
  memory_->clear_order();
  memory_->append_order(orders_.orders().upcoming(dataset_));
}

void Run::retain_by(const char* policy) {
  const std::unique_ptr<Policy> before =
      std::exchange(memory_, find_policy(policy)->make(capacity_, kSamples));
  for (SampleId sample = 0; sample < kSamples; ++sample) {
    if (!before->retained(sample)) continue;
    memory_->set_importance(sample, before->importance(sample));
    memory_->access(0, sample, kBytes, &evicted_);
  }
  orders_new_ = true;
}

void Run::run_batch(Job* job) {
  predict();
  const size_t end = std::min(job->at + kBatch, job->requested.size());
  const auto size = static_cast<double>(end - job->at);
  double missed = 0;
  for (; job->at < end; ++job->at) {
    const SampleId sample = job->delivered[job->at];
    const ImportanceBook::Requester& requester = job->requester;
    orders_.begin(requester.session, requester.job, dataset_, sample);
    orders_.end(requester.job, dataset_, sample);
    for (const auto& one :
         book_.on_read(requester.session, requester.process, dataset_, sample, true)) {
      memory_->set_importance(one.sample, one.priority);
    }
    missed +=
        memory_->access(number(requester.session), sample, kBytes, &evicted_) == Decision::kHit ? 0
                                                                                                : 1;
    book_.report(requester, sample, job->losses[sample]);
  }
  if (job->delivered.size() - job->at <= kAhead) ask(job);
  if (job->probe.phase() == BenefitProbe::Phase::kUncached) missed = size;
  const double seconds =
      std::max(kCompute[job->requester.job - 1] * size / kBatch, missed * kReadSeconds / kWorkers);
  job->clock += seconds;
  const bool probing = job->probe.phase() != BenefitProbe::Phase::kDone;
  job->probe.batch(seconds);
  if (probing && job->probe.phase() == BenefitProbe::Phase::kDone) {
    book_.set_benefit(job->requester, job->probe.benefit());
  }
}

double Run::seconds() {
  for (Job& job : jobs_) begin_epoch(&job);
  for (;;) {
    Job* next = nullptr;
    for (Job& job : jobs_) {
      if (!job.done() && (next == nullptr || job.clock < next->clock)) next = &job;
    }
    if (next == nullptr) break;
    if (next->at == next->requested.size()) {
      begin_epoch(next);
    } else {
      run_batch(next);
    }
    if (next->done()) {
      book_.remove_session(next->requester.session);
      orders_.leave(next->requester.session);
      memory_->end_job(number(next->requester.session));
      if (variant_.policy == std::string("needed")) retain_by("shade");  // there is one job left
    }
  }
  return std::accumulate(jobs_.begin(), jobs_.end(), 0.0,
                         [](double sum, const Job& job) { return sum + job.clock; });
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  std::string line;
  for (const Variant& variant : kVariants) {
    line += (line.empty() ? "" : ", ") + ("\"" + std::string(variant.name) + "\": ") +
            std::to_string(Run(variant, seed).seconds());
  }
  printf("{%s}\n", line.c_str());
  return 0;
}
