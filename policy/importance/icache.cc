#include "policy/importance/icache.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {
namespace {

// Share of the allowed substitutions from which on the bound is taken to be the limit.
constexpr double kNearlyAll = 0.9;

}  // namespace

ICache::ICache(const ICacheSettings& settings)
    : settings_(settings),
      split_(settings.capacity, settings.package_bytes),
      h_(settings.l_cache ? split_.h_bytes() : settings.capacity, settings.samples, settings.fills),
      l_(settings.l_cache ? split_.l_bytes() : 0, settings.labels),
      random_(mixed(settings.seed)) {}

void ICache::join(uint32_t number, Labels labels, bool substitutes) {
  jobs_.try_emplace(number, settings_.samples, labels).first->second.substitutes = substitutes;
}

void ICache::begin_epoch(uint32_t number, std::shared_ptr<const HList> list,
                         std::vector<SampleId>* evicted, std::span<const uint8_t> candidates) {
  Job& job = jobs_.try_emplace(number, settings_.samples, settings_.labels).first->second;
  const double most = settings_.most_substituted * static_cast<double>(job.ledger.requests());
  const bool bounded =
      most > 0 && settings_.substitute == Substitute::kL && settings_.reads_packages &&
      static_cast<double>(job.ledger.count(DeliveryKind::kSubstituted)) >= kNearlyAll * most;
  job.bytes_before = std::exchange(job.bytes, 0);
  if (!settings_.reads_packages) limit_l();
  job.list = std::move(list);
  job.ledger.begin_epoch();
  l_.begin_epoch(number, job.list, job.labels, candidates);
  split_.begin_epoch(bounded);
  evicted->clear();
  if (!settings_.l_cache) {
    h_.set_capacity(split_.capacity(), evicted);
    return;
  }
  std::vector<SampleId> of_l;
  h_.set_capacity(split_.h_bytes(), evicted);
  l_.set_capacity(split_.l_bytes(), &of_l);
  evicted->insert(evicted->end(), of_l.begin(), of_l.end());
  if (std::exchange(begins_packages_, false)) {
    // What was read in passing would fill the room that there is for packages.
    l_.clear(&of_l);
    evicted->insert(evicted->end(), of_l.begin(), of_l.end());
  }
  spare(kNoSample, evicted);
}

// Limits the L-cache to what an epoch can substitute, for the job that needs the most.
void ICache::limit_l() {
  double most = 0;
  for (const auto& [number, job] : jobs_) {
    if (!job.substitutes) continue;
    const uint64_t known = std::max(job.bytes, job.bytes_before);
    const uint64_t bytes = known != 0 ? known : split_.capacity();
    most = std::max(most, settings_.most_substituted * static_cast<double>(bytes));
  }
  split_.set_most_l(static_cast<uint64_t>(most));
}

void ICache::read_packages(uint64_t package_bytes) {
  settings_.reads_packages = true;
  begins_packages_ = true;
  settings_.package_bytes = package_bytes;
  split_.set_package_bytes(package_bytes);
  // One that substitutes, and the next: a package saves more requests than it takes, so that memory
  // is better used for H-samples, of which each takes one. (The paper divides it by frequency.)
  split_.set_most_l(2 * package_bytes);
}

void ICache::load(std::span<const Packed> package, std::vector<SampleId>* evicted) {
  std::vector<Packed> own;
  for (const Packed& packed : package) {
    if (!h_.retained(packed.sample)) own.push_back(packed);
  }
  l_.load(own, evicted);
  spare(kNoSample, evicted);
}

void ICache::spare(SampleId changed, std::vector<SampleId>* evicted) const {
  std::erase_if(*evicted, [&](SampleId sample) {
    return sample != changed && (h_.retained(sample) || l_.retained(sample));
  });
}

void ICache::end_job(uint32_t job) {
  jobs_.erase(job);
  l_.end_job(job);
}

void ICache::drop(SampleId sample) {
  h_.drop(sample);
  l_.drop(sample);
}

const Ledger* ICache::ledger(uint32_t job) const {
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : &at->second.ledger;
}

bool ICache::is_h(uint32_t job, SampleId sample) const {
  return jobs_.at(job).list->contains(sample);
}

bool ICache::may_substitute(uint32_t number) const {
  const Job& job = jobs_.at(number);
  const Ledger& ledger = job.ledger;
  const double most = settings_.most_substituted * static_cast<double>(ledger.requests() + 1);
  return settings_.substitute == Substitute::kL && job.substitutes &&
         static_cast<double>(ledger.count(DeliveryKind::kSubstituted) + 1) <= most;
}

// Lines 19 to 24 of Algorithm 1: an L-sample is delivered from memory, itself or a substitute.
std::optional<Delivery> ICache::l_from_memory(uint32_t number, const Job& job, SampleId requested) {
  const bool taken = job.ledger.delivered(requested);
  if (!taken && (l_.retained(requested) || h_.retained(requested))) {
    return Delivery{requested, DeliveryKind::kLExact};
  }
  if (settings_.substitute == Substitute::kL) {
    if (!may_substitute(number)) return std::nullopt;
    const SampleId other = l_.pick_substitute(number, requested, &random_);
    if (other != kNoSample) return Delivery{other, DeliveryKind::kSubstituted};
  } else if (settings_.substitute == Substitute::kH && h_.count() != 0) {
    return Delivery{h_.at(random_.below(h_.count())), DeliveryKind::kHForL};
  }
  return std::nullopt;
}

Delivery ICache::request(uint32_t number, SampleId requested, uint32_t bytes,
                         std::vector<SampleId>* evicted) {
  evicted->clear();
  Job& job = jobs_.at(number);
  const bool is_h = job.list->contains(requested);
  // Where all are alike, for want of values, their frequency says nothing about the split.
  if (job.list->size() != 0) split_.access(is_h);
  job.bytes += bytes;
  Delivery delivery{requested, DeliveryKind::kMiss};
  // A second request for a sample in an epoch comes from a sampler with replacement.
  if (is_h || job.ledger.requested(requested)) {
    const bool in_memory = h_.retained(requested) || l_.retained(requested);
    if (in_memory) delivery.kind = is_h ? DeliveryKind::kHHit : DeliveryKind::kLExact;
  } else if (const auto found = l_from_memory(number, job, requested)) {
    delivery = *found;
  } else if (job.ledger.delivered(requested)) {
    // It was delivered before, as a substitute: a sample that a substitute displaced is due now.
    const SampleId due = job.ledger.displaced(requested);
    if (due != kNoSample) delivery = {due, DeliveryKind::kMissOther};
  }
  if (delivery.sample == requested) {
    const bool was_retained = h_.retained(requested);
    const Decision decision = h_.access(number, requested, bytes, evicted);
    delivery.retain = decision == Decision::kRetain;
    if (delivery.retain && !was_retained) l_.drop(requested);
    spare(requested, evicted);
  }
  job.ledger.deliver(requested, delivery.sample, delivery.kind);
  l_.delivered(number, delivery.sample);
  return delivery;
}

void ICache::deliver_itself(uint32_t number, SampleId requested) {
  jobs_.at(number).ledger.deliver(requested, requested, DeliveryKind::kMiss);
  l_.delivered(number, requested);
}

}  // namespace sluice::policy
