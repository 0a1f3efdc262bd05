// Several jobs over one dataset (iCache, section III-D): which jobs benefit from the cache, and a
// sample's joint importance to those. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "policy/importance/h_list.h"

namespace sluice::policy {

inline constexpr uint32_t kProbeBatches = 20;     // without the cache, and as many with it
inline constexpr double kBenefitThreshold = 1.5;  // cache-eligible above it

// The ratio of a job's time without the cache to that with it, from mini-batches at the beginning
// of an epoch: the first 20 are read from storage, the next 20 through the cache. A single job need
// not be probed (about 12 % of a short epoch).
class BenefitProbe {
 public:
  enum class Phase : uint8_t { kUncached, kCached, kDone };

  // An epoch begins; unless `several` jobs share the dataset there is nothing to measure.
  void begin_epoch(bool several) {
    phase_ = several ? Phase::kUncached : Phase::kDone;
    batches_ = 0;
    seconds_ = uncached_ = 0;
  }
  // A mini-batch took `seconds`, > 0, from its request to the request of the next.
  void batch(double seconds);

  Phase phase() const { return phase_; }
  // Of the last epoch whose probe was completed; 1 until then.
  double benefit() const { return benefit_; }
  bool eligible() const { return benefit_ > kBenefitThreshold; }

 private:
  Phase phase_ = Phase::kDone;
  uint32_t batches_ = 0;
  double seconds_ = 0, uncached_ = 0;  // of the present phase, of the first
  double benefit_ = 1;
};

// The same ratio without probing, which costs a part of each epoch. A sample's time while samples
// are in memory is measured in passing; its time from storage is known from prefetches. Reads
// overlap with computation: without the cache a sample would take the longer of both times.
class BenefitEstimate {
 public:
  // The job is about to read another sample; `hit`: it is in memory.
  void begun(uint64_t now_ns, bool hit);
  // The job's epoch is over: its time until the next sample does not count.
  void pause() { timed_ = 0; }
  // `storage_ns`: time of storage for one more sample of this job, > 0. The result is at least 1;
  // nothing as long as too few samples in a row were in memory.
  std::optional<double> benefit(double storage_ns) const;

  // Batches arrive at once and workers take turns, hence groups: samples that are timed together,
  // and how many such times are remembered, and needed.
  static constexpr unsigned kTogether = 256, kRemembered = 32, kNeeded = 3;

 private:
  uint64_t began_ns_ = 0;
  unsigned timed_ = 0, hits_ = 0;      // since began_ns_
  std::deque<double> sample_ns_ = {};  // mean times of samples in memory, latest last
};

// The relative importance value (RIV) of each sample: the share of all known values that are not
// above its own, in (0, 1]; 0 if its value is unknown. Equal values have equal RIV. For more than
// 8,192 samples it is an estimate. By sample.
std::vector<float> relative_importance(std::span<const float> values);

// One cache-eligible job's term of the sum.
struct JobImportance {
  double benefit = 1;
  std::span<const float> values;    // importance values, by sample
  std::span<const float> relative;  // relative_importance() of them; empty: not computed
};

// The adjusted importance value (AIV) of each sample: the sum over the jobs of benefit times RIV.
// By sample, as long as the longest of the jobs' values; kUnknownImportance where no job has one.
std::vector<float> adjusted_importance(std::span<const JobImportance> jobs);

}  // namespace sluice::policy
