// Decisions are made ahead of the reader, but do not take effect ahead of it: retention priorities
// change when each position of an order is read. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "policy/importance/ledger.h"
#include "policy/replacement/policy.h"

namespace sluice::policy {

class RetentionPriorities {
 public:
  struct SamplePriority {
    SampleId sample = kNoSample;
    float priority = 0;  // 0: not worth retaining
  };

  // When `delivered`, which is promised as `kind`, is read, its priority becomes `priority`, and
  // that of `evicted` 0.
  void decide(SampleId delivered, float priority, DeliveryKind kind,
              std::span<const SampleId> evicted, bool reads_package = false);
  // These come into memory, some with a priority above 0, by the read of the first of them, which
  // was decided last: what was decided before about their eviction has no effect on them.
  void bring(std::span<const SampleId> samples);
  // The promised outcome of the sample's next read; kDeliveryKinds: nothing was decided about it.
  size_t promised(SampleId sample) const;
  // Whether a read of the sample was decided and has not happened yet.
  bool awaits(SampleId sample) const { return decided_.count(sample) != 0; }
  // Others come with the sample's next read, or it with one of theirs if that is earlier.
  bool reads_package(SampleId sample) const {
    const auto at = decided_.find(sample);
    return at != decided_.end() && at->second.reads_package;
  }
  // The sample was read. Returns the priorities that change now; valid until the next call. Those
  // of samples that were to be read before this one, and were not yet, change when they are:
  // workers read batches in parallel.
  std::span<const SamplePriority> on_read(SampleId sample);
  // The job's epoch is over: its decided reads that have not happened never will. Returns the
  // samples that those were to fetch and retain.
  std::vector<SampleId> end_epoch();
  // An epoch begins, and `evicted` is no longer retained: takes effect with the next read.
  void begin_epoch(std::span<const SampleId> evicted);

 private:
  struct Decided {
    std::vector<SamplePriority> priorities;
    uint64_t number = 0;  // in the order of decisions
    DeliveryKind kind = DeliveryKind::kMiss;
    bool fetched = false;  // it was not in memory before
    bool reads_package = false;
    bool evicted = false;  // by a later decision that took effect before this one
  };
  bool brought_since(SampleId sample, const Decided& decided) const;

  std::unordered_map<SampleId, Decided> decided_;   // by sample that is read
  std::unordered_set<SampleId> overdue_;            // priority 0, not returned yet
  std::unordered_map<SampleId, uint64_t> brought_;  // in this epoch, by the decision's number
  uint64_t decisions_ = 0;
  std::vector<SamplePriority> now_;
};

}  // namespace sluice::policy
