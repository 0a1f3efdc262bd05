// What the policies have in common: sizes, capacity, and the order of events when a sample enters
// or leaves. A derived policy chooses the victims. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

class RetainedSet : public Policy {
 public:
  // `capacity` in bytes. Allocates for `samples` samples at once; higher numbers add to that.
  RetainedSet(uint64_t capacity, uint32_t samples)
      : capacity_(capacity), bytes_(samples, kNotRetained) {}

  Decision access(uint32_t job, SampleId sample, uint64_t bytes,
                  std::vector<SampleId>* evicted) final;
  Decision offer(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted) final;
  void drop(SampleId sample) final;
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) final;
  bool retained(SampleId sample) const final {
    return sample < bytes_.size() && bytes_[sample] != kNotRetained;
  }
  uint64_t retained_bytes(SampleId sample) const final {
    return retained(sample) ? bytes_[sample] : 0;
  }
  uint64_t used() const final { return used_; }
  uint64_t capacity() const final { return capacity_; }
  uint64_t footprint() const final {
    return bytes_.capacity() * sizeof(bytes_[0]) + own_footprint();
  }

 protected:
  // All sample numbers are below this; it never decreases.
  uint32_t samples() const { return static_cast<uint32_t>(bytes_.size()); }
  // Extends all tables by sample to include `sample`.
  void admit(SampleId sample);

  virtual void grow(uint32_t samples) = 0;
  virtual uint64_t own_footprint() const = 0;
  // Whether the sample may be retained at all, if there is room.
  virtual bool admits(SampleId sample) const { return static_cast<void>(sample), true; }
  // Every access, before it is decided whether it is a hit.
  virtual void seen(uint32_t job, SampleId sample) { (void)job, (void)sample; }
  virtual void hit(SampleId sample) { (void)sample; }
  virtual void enter(SampleId sample) = 0;
  virtual void leave(SampleId sample) = 0;
  // Undoes the latest leave() that is not undone yet: the newcomer could not be retained after all.
  virtual void restore(SampleId sample) { enter(sample); }
  // The sample to evict next, to make room for `newcomer`; kNoSample: none is worth less than it.
  // If `newcomer` is kNoSample (the capacity shrinks), the result must be a retained sample.
  virtual SampleId victim(SampleId newcomer) = 0;

 private:
  static constexpr uint64_t kNotRetained = UINT64_MAX;

  void remove(SampleId sample);
  Decision decide(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted);

  uint64_t capacity_;
  uint64_t used_ = 0;
  std::vector<uint64_t> bytes_;  // by sample; kNotRetained
  std::vector<uint64_t> freed_;  // sizes of the samples that are evicted for a newcomer
};

}  // namespace sluice::policy
