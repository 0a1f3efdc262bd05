#include "policy/importance/ledger.h"

namespace sluice::optimizer {

void Ledger::begin_epoch() {
  lost_ += owed_;
  owed_ = requests_ = 0;
  counts_ = {};
  was_requested_.assign(was_requested_.size(), false);
  was_served_.assign(was_served_.size(), false);
  displaced_.clear();
}

void Ledger::serve(SampleId requested, SampleId served, Served how) {
  ++requests_;
  ++counts_[static_cast<size_t>(how)];
  if (was_requested_[served] && !was_served_[served]) --owed_;
  was_served_[served] = true;
  if (!was_requested_[requested] && !was_served_[requested]) {
    displaced_[labels_.of(requested)].push_back(requested);
    ++owed_;
  }
  was_requested_[requested] = true;
}

SampleId Ledger::displaced(SampleId sample) {
  const auto at = displaced_.find(labels_.of(sample));
  if (at == displaced_.end()) return kNoSample;
  std::deque<SampleId>& waiting = at->second;
  while (!waiting.empty() && was_served_[waiting.front()]) waiting.pop_front();
  return waiting.empty() ? kNoSample : waiting.front();
}

}  // namespace sluice::optimizer
