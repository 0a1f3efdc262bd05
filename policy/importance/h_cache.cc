#include "policy/importance/h_cache.h"

#include <bit>
#include <utility>

namespace sluice::policy {

void HCache::set_lists(Lists lists) {
  if (taking_over_) {
    next_ = std::move(lists);
    return;
  }
  lists_ = std::move(lists);
  std::swap(heap_, old_);
  // Growing later would move all entries while a request waits.
  heap_.reserve(old_.size() + old_.size() / 16);
  taking_over_ = true;
  take_over(0);
}

bool HCache::take_over(size_t entries) {
  if (!taking_over_) return false;
  for (; entries > 0 && !old_.empty(); --entries) {
    const SampleId sample = old_.take_any();
    heap_.push(sample, key(sample));
  }
  if (!old_.empty()) return true;
  taking_over_ = false;
  ++swaps_;
  if (next_.list != nullptr) set_lists(std::exchange(next_, {}));
  return taking_over_;
}

// An importance as an integer of the same order. Where samples are spared half as precise, with the
// highest bit for those that are.
uint32_t HCache::key(SampleId sample) const {
  const auto bits = std::bit_cast<uint32_t>(list().importance(sample));
  const uint32_t ordered = (bits & kSpared) != 0 ? ~bits : bits | kSpared;
  if (lists_.awaited == nullptr) return ordered;
  const Awaited& awaited = *lists_.awaited;
  return ordered / 2 | (sample < awaited.size() && awaited[sample] ? kSpared : 0);
}

// What has not been moved yet is keyed then.
void HCache::change_key(SampleId sample) {
  if (retained(sample) && heap_.contains(sample)) heap_.change(sample, key(sample));
}

void HCache::revise(SampleId sample, float importance) {
  if (next_.own != nullptr && sample < next_.own->samples()) next_.own->set(sample, importance);
  if (lists_.own == nullptr || sample >= lists_.own->samples()) return;
  lists_.own->set(sample, importance);
  change_key(sample);
}

void HCache::stop_awaiting(const Awaited& samples) {
  for (SampleId sample = 0; sample < samples.size(); ++sample) {
    if (!samples[sample]) continue;
    next_.end_awaited(sample);
    lists_.end_awaited(sample);
    if (lists_.awaited != nullptr) change_key(sample);
  }
}

void HCache::seen(uint32_t, SampleId sample) {
  next_.end_awaited(sample);
  lists_.end_awaited(sample);
  take_over(kEntriesEach);
}

void HCache::hit(SampleId sample) {
  if (lists_.awaited == nullptr) return;
  if (heap_.contains(sample)) {
    heap_.change(sample, key(sample));
  } else {
    old_.remove(sample);
    enter(sample);
  }
}

void HCache::leave(SampleId sample) { (heap_.contains(sample) ? heap_ : old_).remove(sample); }

SampleId HCache::victim(SampleId newcomer) {
  if (heap_.empty() && old_.empty()) return kNoSample;
  if (lists_.awaited != nullptr && newcomer != kNoSample) {
    if (heap_.empty() || heap_.top_key() >= kSpared) return kNoSample;
    const SampleId least = heap_.top();
    return list().importance(newcomer) <= list().importance(least) ? kNoSample : least;
  }
  const bool from_old = !old_.empty() && (heap_.empty() || list().importance(old_.top()) <=
                                                               list().importance(heap_.top()));
  const SampleId least = (from_old ? old_ : heap_).top();
  if (newcomer != kNoSample && list().importance(newcomer) <= list().importance(least)) {
    return kNoSample;
  }
  return least;
}

}  // namespace sluice::policy
