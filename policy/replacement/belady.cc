#include "policy/replacement/belady.h"

#include <algorithm>

namespace sluice::policy {

void Belady::grow(uint32_t samples) {
  next_.resize(samples, kUnknown);
  last_.resize(samples, kUnknown);
  heap_.grow(samples);
}

void Belady::append_order(std::span<const SampleId> order) {
  retire();
  if (first_ + after_.size() + order.size() > last_place_) renumber();
  for (const SampleId sample : order) {
    admit(sample);
    const auto place = static_cast<uint32_t>(first_ + after_.size());
    after_.push_back(kUnknown);
    if (next_[sample] == kUnknown) {
      next_[sample] = place;
      if (heap_.contains(sample)) heap_.change(sample, key(sample));
    } else {
      after_[last_[sample] - first_] = place;
    }
    last_[sample] = place;
  }
}

void Belady::clear_order() {
  after_.clear();
  passed_ = 0;
  first_ = 0;
  for (SampleId sample = 0; sample < samples(); ++sample) {
    if (next_[sample] == kUnknown) continue;
    next_[sample] = kUnknown;
    if (heap_.contains(sample)) heap_.change(sample, key(sample));
  }
}

void Belady::seen(uint32_t, SampleId sample) {
  const uint32_t place = next_[sample];
  if (place == kUnknown) return;
  uint32_t& after = after_[place - first_];
  next_[sample] = after;
  after = kPassed;
}

void Belady::passed(SampleId sample) {
  if (sample >= samples()) return;  // neither accessed nor predicted
  seen(0, sample);
  if (heap_.contains(sample)) hit(sample);
}

SampleId Belady::victim(SampleId newcomer) {
  if (newcomer != kNoSample && (heap_.empty() || heap_.top_key() >= key(newcomer))) {
    return kNoSample;
  }
  return heap_.top();
}

// Discards the part of the order that has passed, once it is half of the order.
void Belady::retire() {
  while (passed_ < after_.size() && after_[passed_] == kPassed) ++passed_;
  if (passed_ < after_.size() - passed_) return;
  after_.erase(after_.begin(), after_.begin() + static_cast<std::ptrdiff_t>(passed_));
  first_ += static_cast<uint32_t>(passed_);
  passed_ = 0;
}

// Subtracts `first_` from every place, which preserves the order. Keys of the heap are places:
// removing and reinserting samples in the same order costs no more than a change of each.
void Belady::renumber() {
  std::vector<SampleId> in_heap;
  for (SampleId sample = 0; sample < samples(); ++sample) {
    if (heap_.contains(sample)) in_heap.push_back(sample);
  }
  for (const SampleId sample : in_heap) heap_.remove(sample);
  for (uint32_t& place : next_) place -= place == kUnknown ? 0 : first_;
  for (SampleId sample = 0; sample < samples(); ++sample) {
    if (next_[sample] != kUnknown) last_[sample] -= first_;
  }
  for (uint32_t& place : after_) place -= place == kUnknown || place == kPassed ? 0 : first_;
  first_ = 0;
  for (const SampleId sample : in_heap) heap_.push(sample, key(sample));
}

}  // namespace sluice::policy
