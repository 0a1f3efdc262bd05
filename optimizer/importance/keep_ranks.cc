#include "optimizer/importance/keep_ranks.h"

#include <utility>

namespace sluice::optimizer {

void KeepRanks::decide(SampleId served, float rank, std::span<const SampleId> gone) {
  std::vector<Rank>& ranks = decided_[served];
  for (const SampleId sample : gone) {
    if (sample != served) ranks.push_back({sample, 0});
  }
  ranks.push_back({served, rank});
}

std::span<const KeepRanks::Rank> KeepRanks::on_read(SampleId sample) {
  now_ = std::exchange(overdue_, {});
  const auto at = decided_.find(sample);
  if (at != decided_.end()) {
    now_.insert(now_.end(), at->second.begin(), at->second.end());
    decided_.erase(at);
  }
  return now_;
}

void KeepRanks::begin_epoch(std::span<const SampleId> gone) {
  for (const auto& [sample, ranks] : decided_) {
    overdue_.insert(overdue_.end(), ranks.begin(), ranks.end());
  }
  decided_.clear();
  for (const SampleId sample : gone) overdue_.push_back({sample, 0});
}

}  // namespace sluice::optimizer
