#include "policy/importance/retention_priorities.h"

namespace sluice::policy {

void RetentionPriorities::decide(SampleId delivered, float priority, DeliveryKind kind,
                                 std::span<const SampleId> evicted, bool reads_package) {
  Decided& decided = decided_[delivered];
  decided.kind = kind;
  decided.number = ++decisions_;
  decided.reads_package = reads_package;
  decided.evicted = false;
  decided.fetched |= kind == DeliveryKind::kMiss || kind == DeliveryKind::kMissOther;
  for (const SampleId sample : evicted) {
    if (sample != delivered) decided.priorities.push_back({sample, 0});
  }
  decided.priorities.push_back({delivered, priority});
}

void RetentionPriorities::bring(std::span<const SampleId> samples) {
  for (const SampleId sample : samples) {
    brought_[sample] = decisions_;
    overdue_.erase(sample);
    const auto pending = decided_.find(sample);
    if (pending != decided_.end()) pending->second.evicted = false;
  }
}

size_t RetentionPriorities::promised(SampleId sample) const {
  const auto at = decided_.find(sample);
  return at == decided_.end() ? kDeliveryKinds : static_cast<size_t>(at->second.kind);
}

bool RetentionPriorities::brought_since(SampleId sample, const Decided& decided) const {
  const auto brought = brought_.find(sample);
  return brought != brought_.end() && brought->second >= decided.number;
}

std::span<const RetentionPriorities::SamplePriority> RetentionPriorities::on_read(SampleId sample) {
  now_.clear();
  if (!overdue_.empty()) {
    for (const SampleId evicted : overdue_) now_.push_back({evicted, 0});
    overdue_ = {};  // clear() takes time in proportion to the largest size ever, on each later call
  }
  const auto at = decided_.find(sample);
  if (at != decided_.end()) {
    for (const SamplePriority& one : at->second.priorities) {
      if (brought_since(one.sample, at->second)) continue;
      const auto pending = decided_.find(one.sample);
      if (one.sample != sample && pending != decided_.end() &&
          pending->second.number < at->second.number) {
        pending->second.evicted = true;
      } else {
        now_.push_back(one);
      }
    }
    if (at->second.evicted) now_.push_back({sample, 0});
    decided_.erase(at);
  }
  return now_;
}

std::vector<SampleId> RetentionPriorities::end_epoch() {
  std::vector<SampleId> never_read;
  for (const auto& [sample, decided] : decided_) {
    if (decided.evicted) overdue_.insert(sample);
    for (const SamplePriority& one : decided.priorities) {
      if (one.priority <= 0) {
        if (!brought_since(one.sample, decided)) overdue_.insert(one.sample);
      } else if (decided.fetched) {
        never_read.push_back(one.sample);
        overdue_.insert(one.sample);  // another job may have read it
      }
    }
  }
  decided_.clear();
  brought_.clear();
  return never_read;
}

void RetentionPriorities::begin_epoch(std::span<const SampleId> evicted) {
  overdue_.insert(evicted.begin(), evicted.end());
}

}  // namespace sluice::policy
