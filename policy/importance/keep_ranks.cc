#include "policy/importance/keep_ranks.h"

namespace sluice::optimizer {

void KeepRanks::decide(SampleId served, float rank, Served how, std::span<const SampleId> gone) {
  Decided& decided = decided_[served];
  decided.how = how;
  decided.fetched |= how == Served::kMiss || how == Served::kMissOther;
  for (const SampleId sample : gone) {
    if (sample != served) decided.ranks.push_back({sample, 0});
  }
  decided.ranks.push_back({served, rank});
}

size_t KeepRanks::promised(SampleId sample) const {
  const auto at = decided_.find(sample);
  return at == decided_.end() ? kServedKinds : static_cast<size_t>(at->second.how);
}

std::span<const KeepRanks::Rank> KeepRanks::on_read(SampleId sample) {
  now_.clear();
  if (!overdue_.empty()) {
    for (const SampleId gone : overdue_) now_.push_back({gone, 0});
    overdue_ = {};  // clear() takes time in proportion to the largest size ever, on each later call
  }
  const auto at = decided_.find(sample);
  if (at != decided_.end()) {
    now_.insert(now_.end(), at->second.ranks.begin(), at->second.ranks.end());
    decided_.erase(at);
  }
  return now_;
}

std::vector<SampleId> KeepRanks::end_epoch() {
  std::vector<SampleId> never_read;
  for (const auto& [sample, decided] : decided_) {
    for (const Rank& rank : decided.ranks) {
      if (rank.rank <= 0) {
        overdue_.insert(rank.sample);
      } else if (decided.fetched) {
        never_read.push_back(rank.sample);
        overdue_.insert(rank.sample);  // another job may have read it
      }
    }
  }
  decided_.clear();
  return never_read;
}

void KeepRanks::begin_epoch(std::span<const SampleId> gone) {
  overdue_.insert(gone.begin(), gone.end());
}

}  // namespace sluice::optimizer
