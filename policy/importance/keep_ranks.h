// What is decided ahead of the reader is not done ahead of it: which samples are worth keeping
// changes as each position of an order is read. Pure; one thread.
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
    float rank = 0;  // what it is worth to keep it; 0: nothing
  };

  // With the reading of `served`, which is promised as `how`, these ranks come to hold, beside
  // `rank` for itself.
  void decide(SampleId served, float rank, Served how, std::span<const SampleId> gone);
  // What the next reading of the sample was promised as; kServedKinds: nothing was decided of it.
  size_t promised(SampleId sample) const;
  // Something was decided of a reading of the sample that has not come yet.
  bool awaits(SampleId sample) const { return decided_.count(sample) != 0; }
  // The sample was read. Empty if nothing was decided of it. Good until the next call.
  std::span<const Rank> on_read(SampleId sample);
  // The job's epoch is over, and what of it was not read never will be. Returns samples that were
  // to be fetched, and kept, by that.
  std::vector<SampleId> end_epoch();
  // An epoch begins, with which nobody keeps `gone` any more: that holds from the next reading on.
  void begin_epoch(std::span<const SampleId> gone);

 private:
  struct Decided {
    std::vector<Rank> ranks;
    Served how = Served::kMiss;
    bool fetched = false;  // it was not in memory before
  };
  std::unordered_map<SampleId, Decided> decided_;  // by who is read
  std::unordered_set<SampleId> overdue_;           // gone, and nobody was told
  std::vector<Rank> now_;
};

}  // namespace sluice::optimizer
