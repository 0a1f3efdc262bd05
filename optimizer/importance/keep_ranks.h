// What is decided ahead of the reader is not done ahead of it: which samples are worth keeping
// changes as each position of an order is read. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "optimizer/policies/policy.h"

namespace sluice::optimizer {

class KeepRanks {
 public:
  struct Rank {
    SampleId sample = kNoSample;
    float rank = 0;  // what it is worth to keep it; 0: nothing
  };

  // With the reading of `served` these ranks come to hold, beside `rank` for itself.
  void decide(SampleId served, float rank, std::span<const SampleId> gone);
  // The sample was read. Empty if nothing was decided of it. Good until the next call.
  std::span<const Rank> on_read(SampleId sample);
  // An epoch begins, with which nobody keeps `gone` any more: that, and decisions whose positions
  // were never read, hold from the next reading on.
  void begin_epoch(std::span<const SampleId> gone);

 private:
  std::unordered_map<SampleId, std::vector<Rank>> decided_;  // by who is read
  std::vector<Rank> overdue_, now_;
};

}  // namespace sluice::optimizer
