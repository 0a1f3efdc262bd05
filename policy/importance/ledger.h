// A job's requests and the samples delivered for them, in its present epoch and in all: records
// every delivery, so that none is repeated and every lost sample is counted. Pure; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "policy/importance/labels.h"
#include "policy/replacement/policy.h"

namespace sluice::policy {

// How a request was answered. Exact hits and substitutions are always counted apart, so that more
// substitution cannot pass for a better hit ratio.
enum class DeliveryKind : uint8_t {
  kHHit,         // an H-sample, from memory
  kLExact,       // an L-sample itself, from memory
  kSubstituted,  // another L-sample, from memory
  kHForL,        // a retained H-sample, in place of an L-sample (ST_HC; repeats)
  kMiss,         // itself, from storage
  kMissOther,    // another one, from storage: itself was delivered before, no substitute was found
};
inline constexpr size_t kDeliveryKinds = 6;

class Ledger {
 public:
  // `labels` by sample, where only equal ones substitute; they outlive the ledger.
  explicit Ledger(uint32_t samples, Labels labels = {})
      : labels_(labels), was_requested_(samples), was_delivered_(samples) {}

  // Samples that the ended epoch requested and did not deliver are counted as lost: it did not
  // train them.
  void begin_epoch();
  // REQUIRES: both below the number of samples.
  void deliver(SampleId requested, SampleId delivered, DeliveryKind kind);

  bool requested(SampleId sample) const { return was_requested_[sample]; }
  bool delivered(SampleId sample) const { return was_delivered_[sample]; }
  uint32_t samples() const { return static_cast<uint32_t>(was_delivered_.size()); }
  // A sample of the label of `sample` that was requested in this epoch, replaced by another, and
  // not delivered since: the one that waits longest. kNoSample: there is none.
  SampleId displaced(SampleId sample);

  // Of this epoch.
  uint64_t count(DeliveryKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  uint64_t requests() const { return requests_; }
  // Requested and not delivered: one for each sample that was delivered without being requested.
  uint64_t outstanding() const { return outstanding_; }
  // Of all epochs that ended: samples that were replaced by substitutes and not trained.
  uint64_t lost() const { return lost_; }

 private:
  const Labels labels_;
  std::vector<bool> was_requested_, was_delivered_;     // by sample, in this epoch
  std::map<uint32_t, std::deque<SampleId>> displaced_;  // by label; some were delivered since
  std::array<uint64_t, kDeliveryKinds> counts_{};
  uint64_t requests_ = 0, outstanding_ = 0, lost_ = 0;
};

}  // namespace sluice::policy
