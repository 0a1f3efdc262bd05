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

namespace sluice::optimizer {

class KeepRanks {
 public:
  struct Rank {
    SampleId sample = kNoSample;
    float rank = 0;  // retention priority; 0: not worth retaining
  };

  // When `served`, which is promised as `how`, is read, its priority becomes `rank` and that of
  // `gone` 0.
  void decide(SampleId served, float rank, Served how, std::span<const SampleId> gone);
  // The promised outcome of the sample's next read; kServedKinds: nothing was decided about it.
  size_t promised(SampleId sample) const;
  // Whether a read of the sample was decided and has not happened yet.
  bool awaits(SampleId sample) const { return decided_.count(sample) != 0; }
  // The sample was read. Returns the priorities that change now; valid until the next call.
  std::span<const Rank> on_read(SampleId sample);
  // The job's epoch is over: its decided reads that have not happened never will. Returns the
  // samples that those were to fetch and retain.
  std::vector<SampleId> end_epoch();
  // An epoch begins, and `gone` is no longer retained: takes effect with the next read.
  void begin_epoch(std::span<const SampleId> gone);

 private:
  struct Decided {
    std::vector<Rank> ranks;
    Served how = Served::kMiss;
    bool fetched = false;  // it was not in memory before
  };
  std::unordered_map<SampleId, Decided> decided_;  // by sample that is read
  std::unordered_set<SampleId> overdue_;           // priority 0, not returned yet
  std::vector<Rank> now_;
};

}  // namespace sluice::optimizer
