#include "policy/importance/ledger.h"

namespace sluice::policy {

void Ledger::begin_epoch() {
  lost_ += outstanding_;
  outstanding_ = requests_ = 0;
  counts_ = {};
  was_requested_.assign(was_requested_.size(), false);
  was_delivered_.assign(was_delivered_.size(), false);
  displaced_.clear();
}

void Ledger::deliver(SampleId requested, SampleId delivered, DeliveryKind kind) {
  ++requests_;
  ++counts_[static_cast<size_t>(kind)];
  if (was_requested_[delivered] && !was_delivered_[delivered]) --outstanding_;
  was_delivered_[delivered] = true;
  if (!was_requested_[requested] && !was_delivered_[requested]) {
    displaced_[labels_.of(requested)].push_back(requested);
    ++outstanding_;
  }
  was_requested_[requested] = true;
}

SampleId Ledger::displaced(SampleId sample) {
  const auto at = displaced_.find(labels_.of(sample));
  if (at == displaced_.end()) return kNoSample;
  std::deque<SampleId>& waiting = at->second;
  while (!waiting.empty() && was_delivered_[waiting.front()]) waiting.pop_front();
  return waiting.empty() ? kNoSample : waiting.front();
}

}  // namespace sluice::policy
