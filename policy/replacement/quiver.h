// The exact part of Quiver. Pure; see policy.h. 20 bytes a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/links.h"
#include "policy/replacement/retained_set.h"

namespace sluice::policy {

// Quiver (Kumar and Sivathanu, "Quiver: an informed storage cache for deep learning", FAST 2020)
// has two ideas: substitutability (a cached sample replaces a missing one), and coordinated
// eviction among jobs over one dataset. The first changes what is trained on and is left out
// here. The second is exact: a sample is evicted only after every job has read it in its present
// epoch: until then it is certain to be read, and afterwards no job reads it before the next epoch.
// A newcomer that some job still wants displaces such samples, the longest unwanted first; one that
// no job wants displaces none. So with one job what remains of Quiver is MinIO.
//
// Jobs are distinguished by their number modulo 32; of two that share a bit samples are evicted
// sooner, nothing else.
class Quiver : public RetainedSet {
 public:
  Quiver(uint64_t capacity, uint32_t samples)
      : RetainedSet(capacity, samples),
        wanted_by_(samples),
        links_(samples),
        wanted_(&links_),
        unwanted_(&links_) {}

  void begin_epoch(uint32_t job) override;
  void end_job(uint32_t job) override;

 protected:
  void grow(uint32_t samples) override {
    wanted_by_.resize(samples, jobs_);
    links_.resize(samples);
  }
  uint64_t own_footprint() const override {
    return wanted_by_.capacity() * sizeof(uint32_t) + links_.capacity() * sizeof(Link);
  }
  void seen(uint32_t job, SampleId sample) override;
  void enter(SampleId sample) override { list_of(sample).push_back(sample); }
  void leave(SampleId sample) override { list_of(sample).remove(sample); }
  void restore(SampleId sample) override { list_of(sample).push_front(sample); }
  SampleId victim(SampleId newcomer) override;

 private:
  static uint32_t bit(uint32_t job) { return 1U << (job % 32); }
  SampleList& list_of(SampleId sample) { return wanted_by_[sample] != 0 ? wanted_ : unwanted_; }

  uint32_t jobs_ = 0;                // bits of the jobs in an epoch
  std::vector<uint32_t> wanted_by_;  // by sample: bits of jobs that have yet to read it this epoch
  std::vector<Link> links_;
  SampleList wanted_, unwanted_;  // of those that are retained
};

}  // namespace sluice::policy
