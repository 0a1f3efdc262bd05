// Who stays in memory when not everything fits: the one interface that the stage and
// `sluice simulate` use, so that what is simulated is what runs.
//
// Pure: no I/O, no clock, no threads; the same calls give the same answers. One thread at a time.
// Nothing is ever served in another sample's place: a policy decides what is kept, not what is
// read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::optimizer {

// Samples are numbered densely from 0; memory is used in proportion to the highest number, so the
// caller bounds what strangers send.
using SampleId = uint32_t;
inline constexpr SampleId kNoSample = UINT32_MAX;  // no sample has this number

enum class Decision : uint8_t {
  kHit,   // it was kept, and stays
  kKeep,  // it was fetched, and is kept from now on
  kPass,  // it was fetched, and is not kept
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // `job` was given `sample`, of `bytes` bytes. *evicted is cleared and then holds what must make
  // room; it never holds `sample`, with one exception: a sample that was kept with another size
  // has changed, its old copy is evicted and the new one judged afresh. A sample larger than the
  // capacity is never kept. REQUIRES: sample != kNoSample.
  virtual Decision access(uint32_t job, SampleId sample, uint64_t bytes,
                          std::vector<SampleId>* evicted) = 0;

  // A foretold access has come, of which nothing is to be decided: the sample is not in the store,
  // or stays there for a reason of the store's.
  virtual void passed(SampleId sample) { (void)sample; }

  // The store no longer has the sample (it was changed or removed). Without effect if it is not
  // kept.
  virtual void drop(SampleId sample) = 0;

  // Bytes that may be kept from now on. *evicted is cleared and then holds what must go.
  virtual void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) = 0;

  virtual bool kept(SampleId sample) const = 0;
  virtual uint64_t kept_bytes(SampleId sample) const = 0;  // its size; 0 if it is not kept
  virtual uint64_t used() const = 0;                       // bytes
  virtual uint64_t capacity() const = 0;                   // bytes
  virtual uint64_t footprint() const = 0;  // bytes of memory that the policy itself holds

  // A job begins an epoch: it will want every sample again. A job that never says so is taken to
  // be in an epoch without end.
  virtual void begin_epoch(uint32_t job) { (void)job; }
  virtual void end_job(uint32_t job) { (void)job; }

  // What will be accessed after all that was foretold so far, in the order in which it is expected
  // from all jobs together. Call it as often as one likes; the span is copied. An access need not
  // come in its turn (several workers do not); one that never comes stays foretold until
  // forget_order(), which takes back everything foretold (an early break, a wrong prediction).
  virtual void know_order(std::span<const SampleId> order) { (void)order; }
  virtual void forget_order() {}

  // How much `sample` matters to training, higher is more; 0 for those never told. No NaN.
  virtual void set_importance(SampleId sample, float importance) { (void)sample, (void)importance; }
  // As it was told, by policies that go by it; 0 from others.
  virtual float importance(SampleId sample) const { return static_cast<void>(sample), 0.0F; }

  // The page of its file at which `sample` begins; 0 until it is set.
  virtual void set_page(SampleId sample, uint64_t page) { (void)sample, (void)page; }
};

}  // namespace sluice::optimizer
