// Replacement policies: which samples are retained when not all fit. The stage and
// `sluice simulate` use this one interface, so that what is simulated is what runs.
//
// Pure: no I/O, no clock, no threads; the same calls give the same answers. One thread at a time.
// A policy never substitutes one sample for another: it decides which are retained, not which are
// read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::policy {

// Samples are numbered densely from 0; memory use is in proportion to the highest number, so the
// caller must bound the numbers that it receives from jobs.
using SampleId = uint32_t;
inline constexpr SampleId kNoSample = UINT32_MAX;  // no sample has this number

enum class Decision : uint8_t {
  kHit,     // it was retained, and remains so
  kRetain,  // it was fetched, and is retained from now on
  kPass,    // it was fetched, and is not retained
};

class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // `job` accesses `sample`, of `bytes` bytes. *evicted is cleared and then holds the victims;
  // it never holds `sample`, with one exception: a sample that was retained with another size has
  // changed, so its old copy is evicted and the new one is a fetch. A sample larger than the
  // capacity is never retained. REQUIRES: sample != kNoSample.
  virtual Decision access(uint32_t job, SampleId sample, uint64_t bytes,
                          std::vector<SampleId>* evicted) = 0;

  // The store has the sample although no job has accessed it: retained as if it were accessed now,
  // but what was predicted of it is still to come. *evicted as of access().
  virtual Decision offer(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted) = 0;

  // A predicted access has happened that needs no decision: the sample is not in the store, or the
  // store retains it for another reason.
  virtual void passed(SampleId sample) { (void)sample; }

  // The store no longer has the sample (it was changed or removed). No effect if it is not
  // retained.
  virtual void drop(SampleId sample) = 0;

  // Bytes that may be retained from now on. *evicted is cleared and then holds the victims.
  virtual void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) = 0;

  virtual bool retained(SampleId sample) const = 0;
  virtual uint64_t retained_bytes(SampleId sample) const = 0;  // its size; 0: not retained
  virtual uint64_t used() const = 0;                           // bytes
  virtual uint64_t capacity() const = 0;                       // bytes
  virtual uint64_t footprint() const = 0;  // bytes of memory that the policy itself uses

  // A job begins an epoch: it will read every sample again. A job for which this is never called
  // counts as in one endless epoch.
  virtual void begin_epoch(uint32_t job) { (void)job; }
  virtual void end_job(uint32_t job) { (void)job; }

  // Appends to the predicted accesses of all jobs together, in the expected order. May be called
  // any number of times; the span is copied. Accesses may happen out of turn (with several
  // workers); one that never happens remains predicted until clear_order(), which withdraws all
  // predictions (an early break, a wrong prediction).
  virtual void append_order(std::span<const SampleId> order) { (void)order; }
  virtual void clear_order() {}

  // Importance of `sample` to training, higher is more; 0 for samples never set. No NaN.
  virtual void set_importance(SampleId sample, float importance) { (void)sample, (void)importance; }
  // The value that was set, of policies that use it; 0 of others.
  virtual float importance(SampleId sample) const { return static_cast<void>(sample), 0.0F; }

  // The page of its file at which `sample` begins; 0 until it is set.
  virtual void set_page(SampleId sample, uint64_t page) { (void)sample, (void)page; }
};

}  // namespace sluice::policy
