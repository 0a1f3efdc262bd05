#include "policy/replacement/auto_policy.h"

#include <algorithm>
#include <iterator>

#include "policy/replacement/belady.h"
#include "policy/replacement/lfu.h"
#include "policy/replacement/list_policies.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kShortestPass = 1024;  // accesses of the models before they are compared
// Share of the requested bytes that a challenger must save in addition: a change costs a warm-up
// pass.
constexpr double kClearlyBetter = 0.02;

// Small datasets are modelled whole, large ones by some ten thousand samples: with that many the
// noise is small relative to the differences between the policies.
unsigned model_shift(uint32_t samples) {
  unsigned shift = 0;
  while (shift < 6 && (samples >> shift) > 16384) ++shift;
  return shift;
}

}  // namespace

AutoPolicy::AutoPolicy(uint64_t capacity, uint32_t samples)
    : shift_(model_shift(samples)), now_(make(choice_, capacity, samples)) {
  for (size_t model = 0; model < std::size(models_); ++model) {
    models_[model].policy =
        make(static_cast<Choice>(model), capacity >> shift_, (samples >> shift_) + 1);
  }
}

std::unique_ptr<Policy> AutoPolicy::make(Choice choice, uint64_t capacity, uint32_t samples) {
  switch (choice) {
    case kMinIo:
      break;
    case kLru:
      return std::make_unique<Lru>(capacity, samples);
    case kLfu:
      return std::make_unique<Lfu>(capacity, samples);
    case kBelady:
      return std::make_unique<Belady>(capacity, samples);
  }
  return std::make_unique<MinIo>(capacity, samples);
}

const char* AutoPolicy::chosen() const {
  static constexpr const char* kNames[] = {"minio", "lru", "lfu", "belady"};
  return kNames[choice_];
}

uint64_t AutoPolicy::footprint() const {
  uint64_t bytes = now_->footprint();
  for (const Model& model : models_) bytes += model.policy->footprint();
  return bytes;
}

Decision AutoPolicy::access(uint32_t job, SampleId sample, uint64_t bytes,
                            std::vector<SampleId>* evicted) {
  end_ = std::max(end_, sample + 1);
  if (modelled(sample)) observe(sample, bytes);
  const Choice wanted = ordered_ ? kBelady : best_;
  if (choice_ != wanted) change_to(wanted);
  return now_->access(job, sample, bytes, evicted);
}

void AutoPolicy::drop(SampleId sample) {
  now_->drop(sample);
  if (!modelled(sample)) return;
  for (Model& model : models_) model.policy->drop(sample >> shift_);
}

void AutoPolicy::set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) {
  for (Model& model : models_) model.policy->set_capacity(bytes >> shift_, &scratch_);
  now_->set_capacity(bytes, evicted);
}

void AutoPolicy::append_order(std::span<const SampleId> order) {
  if (order.empty()) return;
  ordered_ = true;
  if (choice_ != kBelady) change_to(kBelady);
  now_->append_order(order);
}

void AutoPolicy::clear_order() {
  ordered_ = false;  // a job that breaks off often sends its next order before an access
  now_->clear_order();
}

// One of every 2^shift_ neighbours, chosen by a hash, since neighbours are alike.
bool AutoPolicy::modelled(SampleId sample) const {
  const uint32_t group = sample >> shift_;
  const uint64_t hash = (group + 1) * 0x9e3779b97f4a7c15ULL;
  const uint32_t member = sample - (group << shift_);
  return member == static_cast<uint32_t>(hash >> 40) % (1U << shift_);
}

void AutoPolicy::observe(SampleId sample, uint64_t bytes) {
  for (Model& model : models_) {
    const Decision decision = model.policy->access(0, sample >> shift_, bytes, &scratch_);
    if (decision == Decision::kHit) model.saved += bytes;
  }
  requested_ += bytes;
  if (++accesses_ >= std::max<uint64_t>(kShortestPass, end_ >> shift_)) judge();
}

void AutoPolicy::judge() {
  const double margin = kClearlyBetter * static_cast<double>(requested_);
  Choice best = best_;
  for (size_t model = 0; model < std::size(models_); ++model) {
    const double lead =
        static_cast<double>(models_[model].saved) - static_cast<double>(models_[best_].saved);
    if (lead > margin && models_[model].saved > models_[best].saved) {
      best = static_cast<Choice>(model);
    }
  }
  best_ = best;
  for (Model& model : models_) model.saved = 0;
  accesses_ = 0;
  requested_ = 0;
}

// The new policy gets all retained samples: they fit, so nothing is evicted.
void AutoPolicy::change_to(Choice choice) {
  std::unique_ptr<Policy> next = make(choice, now_->capacity(), end_);
  for (SampleId sample = 0; sample < end_; ++sample) {
    if (now_->retained(sample)) next->access(0, sample, now_->retained_bytes(sample), &scratch_);
  }
  now_ = std::move(next);
  choice_ = choice;
}

}  // namespace sluice::policy
