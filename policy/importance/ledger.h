// What one job was given in place of what, in its present epoch and in all: every sample that is
// served is in it, so that none is served twice or lost in silence. Pure; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "policy/importance/labels.h"
#include "policy/replacement/policy.h"

namespace sluice::optimizer {

// How a request was answered. Hits are always told apart: no figure is met by substituting more.
enum class Served : uint8_t {
  kHHit,         // an H-sample, from memory
  kLExact,       // an L-sample itself, from memory
  kSubstituted,  // another L-sample, from memory
  kHForL,        // an H-sample that is kept, in place of an L-sample (ST_HC; repeats)
  kMiss,         // itself, from storage
  kMissOther,    // from storage, and another one: its own place was taken, and nobody stood in
};
inline constexpr size_t kServedKinds = 6;

class Ledger {
 public:
  // `labels` by sample, if one stands in only for another of the same; they outlive the ledger.
  explicit Ledger(uint32_t samples, Labels labels = {})
      : labels_(labels), was_requested_(samples), was_served_(samples) {}

  // What was requested and not served in the epoch that ends is lost: it was never trained, and is
  // counted.
  void begin_epoch();
  // REQUIRES: both below the number of samples.
  void serve(SampleId requested, SampleId served, Served how);

  bool requested(SampleId sample) const { return was_requested_[sample]; }
  bool served(SampleId sample) const { return was_served_[sample]; }
  uint32_t samples() const { return static_cast<uint32_t>(was_served_.size()); }
  // A sample of the label of `sample` that was requested in this epoch, in whose place another was
  // served, and that was not served since: the one that waits longest. kNoSample: there is none.
  SampleId displaced(SampleId sample);

  // Of this epoch.
  uint64_t count(Served how) const { return counts_[static_cast<size_t>(how)]; }
  uint64_t requests() const { return requests_; }
  // Requested and not served: one for each sample that was served without being requested.
  uint64_t owed() const { return owed_; }
  // Of all epochs that ended: samples that somebody stood in for and that were not trained.
  uint64_t lost() const { return lost_; }

 private:
  const Labels labels_;
  std::vector<bool> was_requested_, was_served_;        // by sample, in this epoch
  std::map<uint32_t, std::deque<SampleId>> displaced_;  // by label; some were served since
  std::array<uint64_t, kServedKinds> counts_{};
  uint64_t requests_ = 0, owed_ = 0, lost_ = 0;
};

}  // namespace sluice::optimizer
