// What the policies have in common: sizes, capacity, and the order of events when a sample comes
// or goes. A policy adds whom to evict. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::optimizer {

class KeptSet : public Policy {
 public:
  // `capacity` in bytes. Memory for `samples` samples is taken at once; higher numbers add to it.
  KeptSet(uint64_t capacity, uint32_t samples) : capacity_(capacity), bytes_(samples, kNotKept) {}

  Decision access(uint32_t job, SampleId sample, uint64_t bytes,
                  std::vector<SampleId>* evicted) final;
  void drop(SampleId sample) final;
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) final;
  bool kept(SampleId sample) const final {
    return sample < bytes_.size() && bytes_[sample] != kNotKept;
  }
  uint64_t kept_bytes(SampleId sample) const final { return kept(sample) ? bytes_[sample] : 0; }
  uint64_t used() const final { return used_; }
  uint64_t capacity() const final { return capacity_; }
  uint64_t footprint() const final {
    return bytes_.capacity() * sizeof(bytes_[0]) + own_footprint();
  }

 protected:
  // Samples whose numbers the policy must be ready for; never less than at the last call.
  uint32_t samples() const { return static_cast<uint32_t>(bytes_.size()); }
  // Makes room for `sample` in all that is kept by number.
  void admit(SampleId sample);

  virtual void grow(uint32_t samples) = 0;
  virtual uint64_t own_footprint() const = 0;
  // Whether the sample may be kept at all, should there be room.
  virtual bool admits(SampleId sample) const { return static_cast<void>(sample), true; }
  // Every access, before it is decided whether it is a hit.
  virtual void seen(uint32_t job, SampleId sample) { (void)job, (void)sample; }
  virtual void hit(SampleId sample) { (void)sample; }
  virtual void enter(SampleId sample) = 0;
  virtual void leave(SampleId sample) = 0;
  // Undoes the latest leave() that was not undone yet: the newcomer could not be kept after all.
  virtual void restore(SampleId sample) { enter(sample); }
  // Who goes first. `newcomer` is whom room is made for: kNoSample as the answer then means that
  // nobody is worth less. With kNoSample as newcomer somebody must go (and somebody is kept).
  virtual SampleId victim(SampleId newcomer) = 0;

 private:
  static constexpr uint64_t kNotKept = UINT64_MAX;

  void remove(SampleId sample);

  uint64_t capacity_;
  uint64_t used_ = 0;
  std::vector<uint64_t> bytes_;  // by sample; kNotKept
  std::vector<uint64_t> freed_;  // sizes of those that are evicted while room is made
};

}  // namespace sluice::optimizer
