// Several jobs over one dataset (iCache, section III-D): who gains by the cache, and what a sample
// matters to those who do together. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "policy/importance/h_list.h"

namespace sluice::optimizer {

inline constexpr uint32_t kProbeBatches = 20;     // without the cache, and as many with it
inline constexpr double kBenefitThreshold = 1.5;  // cache-eligible above it

// One job's time without the cache over that with it, from mini-batches at the beginning of an
// epoch: the first 20 are read from storage, the next 20 through the cache. A job that stands alone
// need not be probed (about 12 % of a short epoch).
class BenefitProbe {
 public:
  enum class Phase : uint8_t { kUncached, kCached, kDone };

  // The epoch begins; `several` jobs share the dataset, else there is nothing to find out.
  void begin_epoch(bool several) {
    phase_ = several ? Phase::kUncached : Phase::kDone;
    batches_ = 0;
    seconds_ = uncached_ = 0;
  }
  // A mini-batch took so long, > 0, from asking for it to asking for the next.
  void batch(double seconds);

  Phase phase() const { return phase_; }
  // Of the last epoch that was probed to the end; 1 until then.
  double benefit() const { return benefit_; }
  bool eligible() const { return benefit_ > kBenefitThreshold; }

 private:
  Phase phase_ = Phase::kDone;
  uint32_t batches_ = 0;
  double seconds_ = 0, uncached_ = 0;  // of the present phase, of the first
  double benefit_ = 1;
};

// The same of a job that is not probed, since probing costs it a part of each epoch. What its
// samples take while they are in memory is seen as it goes, and what storage takes for one is known
// of the reads that are made ahead. Reading goes on while a job computes: without the cache it
// would take the longer of both.
class BenefitEstimate {
 public:
  // The job is about to read another sample; `hit`: it is in memory.
  void begun(uint64_t now_ns, bool hit);
  // What the job does until the next sample is no part of reading: its epoch is over.
  void pause() { timed_ = 0; }
  // `storage_ns`: what storage takes for one more sample of this job, > 0; at least 1 then. Nothing
  // as long as too few samples in a row were in memory.
  std::optional<double> benefit(double storage_ns) const;

  // Batches come at once and workers take turns: samples that are timed together, and how many such
  // times are remembered, and needed.
  static constexpr unsigned kTogether = 256, kRemembered = 32, kNeeded = 3;

 private:
  uint64_t began_ns_ = 0;
  unsigned timed_ = 0, hits_ = 0;      // since began_ns_
  std::deque<double> sample_ns_ = {};  // means of samples that were in memory, latest last
};

// The relative importance value (RIV) of each sample: the share of all that have a known value
// which matter no more than it, in (0, 1]; 0 for those of which none is known. Equal values are
// equally relative. Of more than 8,192 samples it is an estimate. By sample.
std::vector<float> relative_importance(std::span<const float> values);

// One cache-eligible job's part in the sum.
struct JobImportance {
  double benefit = 1;
  std::span<const float> values;    // importance values, by sample
  std::span<const float> relative;  // relative_importance() of them; empty: not known
};

// The adjusted importance value (AIV) of each sample: the sum over the jobs of benefit times RIV.
// By sample, as long as the longest of the jobs' values; kUnknownImportance where no job knows.
std::vector<float> adjusted_importance(std::span<const JobImportance> jobs);

}  // namespace sluice::optimizer
