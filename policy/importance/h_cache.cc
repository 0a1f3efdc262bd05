#include "policy/importance/h_cache.h"

namespace sluice::policy {

void HCache::set_list(std::shared_ptr<const HList> list) {
  if (taking_over_) {
    next_ = std::move(list);
    return;
  }
  list_ = std::move(list);
  std::swap(heap_, old_);
  // Growing later would move all entries while a request waits.
  heap_.reserve(old_.size() + old_.size() / 16);
  taking_over_ = true;
  take_over(0);
}

bool HCache::take_over(size_t entries) {
  if (!taking_over_) return false;
  for (; entries > 0 && !old_.empty(); --entries) enter(old_.take_any());
  if (!old_.empty()) return true;
  taking_over_ = false;
  ++swaps_;
  if (next_ != nullptr) set_list(std::move(next_));
  return taking_over_;
}

void HCache::leave(SampleId sample) { (heap_.contains(sample) ? heap_ : old_).remove(sample); }

SampleId HCache::victim(SampleId newcomer) {
  if (heap_.empty() && old_.empty()) return kNoSample;
  const bool from_old = !old_.empty() && (heap_.empty() || list_->importance(old_.top()) <=
                                                               list_->importance(heap_.top()));
  const SampleId least = (from_old ? old_ : heap_).top();
  if (newcomer != kNoSample && list_->importance(newcomer) <= list_->importance(least)) {
    return kNoSample;
  }
  return least;
}

}  // namespace sluice::policy
