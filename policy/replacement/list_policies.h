// The policies that need no more than one list. Pure; see policy.h. 16 bytes a sample.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/links.h"
#include "policy/replacement/retained_set.h"

namespace sluice::policy {

// Samples in the order of arrival; the derived policy chooses the victims.
class ListPolicy : public RetainedSet {
 public:
  ListPolicy(uint64_t capacity, uint32_t samples)
      : RetainedSet(capacity, samples), links_(samples), list_(&links_) {}

 protected:
  void grow(uint32_t samples) override { links_.resize(samples); }
  uint64_t own_footprint() const override { return links_.capacity() * sizeof(Link); }
  void enter(SampleId sample) override { list_.push_back(sample); }
  void leave(SampleId sample) override { list_.remove(sample); }
  const SampleList& list() const { return list_; }

 private:
  std::vector<Link> links_;
  SampleList list_;
};

// First in, first out.
class Fifo : public ListPolicy {
 public:
  using ListPolicy::ListPolicy;

 protected:
  SampleId victim(SampleId) override { return list().front(); }
};

// Evicts the least recently used. Under a uniform reshuffle with a cache of a fraction c of the
// dataset the hit ratio is c + (1 - c) ln(1 - c): the "Default" of iCache, Figure 16.
class Lru : public Fifo {
 public:
  using Fifo::Fifo;

 protected:
  void hit(SampleId sample) override {
    leave(sample);
    enter(sample);
  }
};

// CoorDL's MinIO cache (Mohan et al., "Analyzing and mitigating data stalls in DNN training",
// VLDB 2021; iCache, section VI-A): the first samples are retained, none is evicted for another.
// When the capacity shrinks the newest are evicted first: a shrink and a growth disturb least.
class MinIo : public ListPolicy {
 public:
  using ListPolicy::ListPolicy;

 protected:
  SampleId victim(SampleId newcomer) override {
    return newcomer == kNoSample ? list().back() : kNoSample;
  }
};

}  // namespace sluice::policy
