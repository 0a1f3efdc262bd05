#include "policy/replacement/retained_set.h"

#include <algorithm>

namespace sluice::policy {

void RetainedSet::admit(SampleId sample) {
  if (sample < bytes_.size()) return;
  const uint64_t wanted = std::max<uint64_t>(uint64_t{sample} + 1, bytes_.size() * 5 / 4);
  bytes_.resize(std::min<uint64_t>(wanted, kNoSample), kNotRetained);
  grow(samples());
}

void RetainedSet::remove(SampleId sample) {
  leave(sample);
  used_ -= bytes_[sample];
  bytes_[sample] = kNotRetained;
}

Decision RetainedSet::access(uint32_t job, SampleId sample, uint64_t bytes,
                             std::vector<SampleId>* evicted) {
  evicted->clear();
  admit(sample);
  seen(job, sample);
  return decide(sample, bytes, evicted);
}

Decision RetainedSet::offer(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted) {
  evicted->clear();
  admit(sample);
  return decide(sample, bytes, evicted);
}

Decision RetainedSet::decide(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted) {
  if (bytes_[sample] == bytes) {
    hit(sample);
    return Decision::kHit;
  }
  if (bytes_[sample] != kNotRetained) {
    remove(sample);
    evicted->push_back(sample);
  }
  if (bytes > capacity_ || !admits(sample)) return Decision::kPass;
  const size_t before = evicted->size();
  freed_.clear();
  while (used_ > capacity_ - bytes) {
    const SampleId loser = victim(sample);
    if (loser == kNoSample) {
      // The possible victims do not make enough room: they remain.
      for (; evicted->size() > before; evicted->pop_back(), freed_.pop_back()) {
        bytes_[evicted->back()] = freed_.back();
        used_ += freed_.back();
        restore(evicted->back());
      }
      return Decision::kPass;
    }
    freed_.push_back(bytes_[loser]);
    remove(loser);
    evicted->push_back(loser);
  }
  bytes_[sample] = bytes;
  used_ += bytes;
  enter(sample);
  return Decision::kRetain;
}

void RetainedSet::drop(SampleId sample) {
  if (retained(sample)) remove(sample);
}

void RetainedSet::set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) {
  evicted->clear();
  capacity_ = bytes;
  while (used_ > capacity_) {
    evicted->push_back(victim(kNoSample));
    remove(evicted->back());
  }
}

}  // namespace sluice::policy
