#include "policy/importance/h_cache.h"

#include <bit>
#include <utility>

namespace sluice::policy {

void HCache::set_list(std::shared_ptr<const HList> list, bool spares) {
  if (taking_over_) {
    next_ = {std::move(list), spares};
    return;
  }
  list_ = std::move(list);
  spares_ = spares;
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
    heap_.push(sample, key(sample, false));
  }
  if (!old_.empty()) return true;
  taking_over_ = false;
  ++swaps_;
  if (next_.list != nullptr) set_list(std::exchange(next_.list, nullptr), next_.spares);
  return taking_over_;
}

// An importance as an integer of the same order. Where samples are spared half as precise, with the
// highest bit for those that are.
uint32_t HCache::key(SampleId sample, bool accessed) const {
  const auto bits = std::bit_cast<uint32_t>(list_->importance(sample));
  const uint32_t ordered = (bits & kSpared) != 0 ? ~bits : bits | kSpared;
  if (!spares_) return ordered;
  return ordered / 2 | (accessed || !list_->contains(sample) ? 0 : kSpared);
}

void HCache::hit(SampleId sample) {
  if (!spares_) return;
  if (heap_.contains(sample)) {
    heap_.change(sample, key(sample, true));
  } else {
    old_.remove(sample);
    enter(sample);
  }
}

void HCache::leave(SampleId sample) { (heap_.contains(sample) ? heap_ : old_).remove(sample); }

SampleId HCache::victim(SampleId newcomer) {
  if (heap_.empty() && old_.empty()) return kNoSample;
  if (spares_ && newcomer != kNoSample) {
    if (heap_.empty() || heap_.top_key() >= kSpared) return kNoSample;
    const SampleId least = heap_.top();
    return list_->importance(newcomer) <= list_->importance(least) ? kNoSample : least;
  }
  const bool from_old = !old_.empty() && (heap_.empty() || list_->importance(old_.top()) <=
                                                               list_->importance(heap_.top()));
  const SampleId least = (from_old ? old_ : heap_).top();
  if (newcomer != kNoSample && list_->importance(newcomer) <= list_->importance(least)) {
    return kNoSample;
  }
  return least;
}

}  // namespace sluice::policy
