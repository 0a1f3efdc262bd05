#include "policy/replacement/quiver.h"

namespace sluice::policy {

void Quiver::begin_epoch(uint32_t job) {
  jobs_ |= bit(job);
  while (unwanted_.front() != kNoSample) {
    const SampleId sample = unwanted_.front();
    unwanted_.remove(sample);
    wanted_.push_back(sample);
  }
  for (uint32_t& jobs : wanted_by_) jobs |= bit(job);
}

void Quiver::end_job(uint32_t job) {
  jobs_ &= ~bit(job);
  for (SampleId sample = 0; sample < samples(); ++sample) {
    const bool moves = wanted_by_[sample] == bit(job) && retained(sample);
    if (moves) wanted_.remove(sample);
    wanted_by_[sample] &= ~bit(job);
    if (moves) unwanted_.push_back(sample);
  }
}

void Quiver::seen(uint32_t job, SampleId sample) {
  const bool moves = wanted_by_[sample] == bit(job) && retained(sample);
  if (moves) wanted_.remove(sample);
  wanted_by_[sample] &= ~bit(job);
  if (moves) unwanted_.push_back(sample);
}

SampleId Quiver::victim(SampleId newcomer) {
  if (newcomer != kNoSample && wanted_by_[newcomer] == 0) return kNoSample;
  if (unwanted_.front() != kNoSample || newcomer != kNoSample) return unwanted_.front();
  return wanted_.back();
}

}  // namespace sluice::policy
