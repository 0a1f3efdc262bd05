#include "policy/importance/icache_system.h"

#include <algorithm>
#include <utility>

#include "policy/importance/jobs.h"

namespace sluice::policy {

ICacheSystem::ICacheSystem(const SystemSettings& settings, Substitute substitute, bool l_cache)
    : settings_(settings),
      packs_(l_cache && substitute == Substitute::kL),
      bytes_(settings.samples),
      cache_({.capacity = settings.capacity,
              .samples = settings.samples,
              .substitute = substitute,
              .most_substituted = settings.most_substituted,
              .package_bytes = settings.package_bytes,
              .l_cache = l_cache,
              .reads_packages = settings.reads_packages,
              .fills = settings.fills,
              .labels = settings.labels,
              .seed = settings.seed}),
      packer_({.samples = settings.samples,
               .package_bytes = settings.package_bytes,
               .most_bytes = UINT64_MAX,
               .seed = settings.seed},
              [this](SampleId sample) { return bytes_[sample]; }),
      is_passing_(settings.samples) {}

std::vector<bool> ICacheSystem::begin_epoch(uint32_t number, uint32_t epoch,
                                            std::span<const float> values) {
  Job& job = jobs_[number];
  if (job.selector == nullptr) job.selector = find_selector("loss")->make(settings_.selection);
  EpochChoice choice;
  choice.selector = job.selector;
  choice.epoch = epoch;
  choice.h_share = settings_.h_share;
  choice.looks_ahead = settings_.looks_ahead;
  choice.values.assign(values.begin(), values.end());
  choose(&choice);
  begin_chosen(number, &choice);
  return choice.chosen;
}

void ICacheSystem::begin_chosen(uint32_t number, EpochChoice* choice) {
  Job& job = jobs_[number];
  job.values = std::move(choice->values);
  job.relative.clear();
  job.top = std::move(choice->top);
  job.coming = std::move(choice->coming);
  job.coming_list = std::move(choice->coming_list);
  job.candidates = choice->candidates;
  const HCache::Awaited before = std::exchange(job.chosen, choice->chosen);
  job.list = std::move(choice->list);
  cache_.begin_epoch(number, job.list, &evicted_, choice->candidates);
  choose_cache_list(job, before);
  if (chunks_) {
    chunks_->begin_epoch();
    for (const SampleId evicted : evicted_) chunks_->drop(evicted);
  } else if (!settings_.reads_packages) {
    load_passing();
  } else if (packs_) {
    packer_.renew(*job.list);
  }
}

// Of the jobs that have begun an epoch.
bool ICacheSystem::is_one_team() const {
  const Job* first = nullptr;
  for (const auto& [number, job] : jobs_) {
    if (job.list == nullptr) continue;
    if (first != nullptr && (job.team == 0 || job.team != first->team)) return false;
    first = &job;
  }
  return true;
}

// The union of the lists of a team's ranks.
std::shared_ptr<const HList> ICacheSystem::list_of_team() const {
  std::vector<HListEntry> entries;
  for (const auto& [number, job] : jobs_) {
    entries.insert(entries.end(), job.top.begin(), job.top.end());
  }
  return std::make_shared<const HList>(settings_.samples, entries);
}

// Of ranks each replaces its own part of what all of them will select, and of what they select:
// the rest is as it was revised, and as far as it was requested. `before`: what it selected last.
void ICacheSystem::look_ahead(const Job& job, const HCache::Awaited& before) {
  const HList* const all = cache_.h_cache().own_list();
  if (jobs_.size() == 1 || all == nullptr) {
    cache_.set_cache_list(job.coming_list, job.chosen);
    return;
  }
  auto coming = std::make_shared<HList>(*all);
  HCache::Awaited awaited = *cache_.h_cache().awaited();
  for (SampleId sample = 0; sample < job.chosen.size(); ++sample) {
    if (!job.candidates.empty() && job.candidates[sample] == 0) {
      if (sample < before.size() && before[sample]) awaited[sample] = false;
      continue;
    }
    const bool expected = job.coming_list->contains(sample);
    coming->set(sample, expected ? job.coming_list->importance(sample) : kUnknownImportance);
    awaited[sample] = job.chosen[sample];
  }
  cache_.set_cache_list(std::move(coming), std::move(awaited));
}

void ICacheSystem::observe(uint32_t number, SampleId sample, float value) {
  const auto at = jobs_.find(number);
  if (at == jobs_.end() || at->second.coming == nullptr || !is_one_team()) return;
  const Job& job = at->second;
  if (!job.candidates.empty() && job.candidates[sample] == 0) return;  // it is another rank's
  cache_.revise(sample, job.coming->importance(sample, value).value_or(kUnknownImportance));
}

// Of several jobs the adjusted importance of all that are cache-eligible, or of all if none is.
void ICacheSystem::choose_cache_list(const Job& begun, const HCache::Awaited& before) {
  if (is_one_team()) {
    if (begun.coming_list != nullptr) {
      look_ahead(begun, before);
    } else {
      cache_.set_cache_list(jobs_.size() == 1 ? begun.list : list_of_team());
    }
    return;
  }
  std::vector<JobImportance> all, eligible;
  for (auto& [number, job] : jobs_) {
    if (job.list == nullptr) continue;
    if (job.relative.empty()) job.relative = relative_importance(job.values);
    all.push_back({job.benefit, job.values, job.relative});
    if (!job.probed || job.benefit > kBenefitThreshold) eligible.push_back(all.back());
  }
  if (all.empty()) return;
  if (eligible.empty()) eligible = std::move(all);
  const std::vector<float> adjusted = adjusted_importance(eligible);
  std::vector<bool> some = begun.chosen;
  for (const auto& [number, job] : jobs_) {
    for (const HListEntry& entry : job.top) some[entry.sample] = true;
  }
  cache_.set_cache_list(
      std::make_shared<const HList>(settings_.samples, top_of(some, adjusted, settings_.h_share)));
}

void ICacheSystem::end_job(uint32_t number) {
  const auto ended = jobs_.extract(number);
  cache_.end_job(number);
  if (!ended.empty()) cache_.stop_awaiting(ended.mapped().chosen);
  // The remaining job may not have begun an epoch yet.
  if (jobs_.size() != 1 || jobs_.begin()->second.list == nullptr) return;
  const Job& left = jobs_.begin()->second;
  if (left.coming_list == nullptr) {
    cache_.set_cache_list(left.list);
  } else if (cache_.h_cache().own_list() == nullptr) {
    cache_.set_cache_list(left.coming_list, left.chosen);
  }
}

void ICacheSystem::set_benefit(uint32_t number, double benefit) {
  Job& job = jobs_.at(number);
  job.benefit = benefit;
  job.probed = true;
}

double ICacheSystem::benefit(uint32_t number) const {
  const auto at = jobs_.find(number);
  return at == jobs_.end() ? 1 : at->second.benefit;
}

void ICacheSystem::set_packages(std::shared_ptr<const ChunkMap> map, std::vector<uint32_t> bytes) {
  if (!settings_.reads_packages) load_passing();
  settings_.reads_packages = true;
  bytes_ = bytes;
  chunks_.emplace(std::move(map), std::move(bytes), settings_.seed);
  cache_.read_packages(chunks_->package_bytes());
}

std::optional<SampleId> ICacheSystem::comes_with(SampleId sample) const {
  if (!chunks_) return std::nullopt;
  if (chunks_->waits(sample)) return kNoSample;
  const SampleId first = chunks_->read_with(sample);
  return first == kNoSample ? std::nullopt : std::optional(first);
}

Delivery ICacheSystem::request(uint32_t number, SampleId sample, uint32_t bytes) {
  bytes_[sample] = bytes;
  read_in_package_.clear();
  Delivery delivery = cache_.request(number, sample, bytes, &evicted_);
  // With several jobs a sample that the H-cache evicts may be in passing_, for the L-cache.
  std::erase_if(evicted_,
                [&](SampleId evicted) { return evicted != sample && is_passing_[evicted]; });
  const Job& job = jobs_.at(number);
  if (chunks_) {
    read_in_package_ = chunks_->read_for(delivery.sample);
    if (!job.list->contains(sample)) load_chunk(number, job, sample);
    for (const SampleId evicted : evicted_) chunks_->drop(evicted);
    return delivery;
  }
  if (!packs_ || job.list->contains(sample)) return delivery;
  if (settings_.reads_packages) {
    if (delivery.kind != DeliveryKind::kLExact) packer_.missed(sample);
    pack_and_load(number, job, sample);
  } else if (delivery.kind == DeliveryKind::kSubstituted) {
    cache_.retire(delivery.sample);
    evicted_.push_back(delivery.sample);
  } else if (delivery.kind == DeliveryKind::kMiss || delivery.kind == DeliveryKind::kMissOther) {
    delivery.retain = delivery.retain || retain_in_passing(job, delivery.sample);
  }
  return delivery;
}

// A sample that was read and delivered may substitute from the next epoch on, once, and then makes
// room for one that was just read: nothing is read only to substitute, and each epoch has other
// substitutes. The gain of the paper's packages, few large requests instead of many small ones,
// prefetching has anyway.
bool ICacheSystem::retain_in_passing(const Job& job, SampleId sample) {
  const LCache& l_cache = cache_.l_cache();
  if (!job.substitutes || job.list->size() == 0 || is_passing_[sample] ||
      l_cache.retained(sample) ||
      l_cache.used() + passing_bytes_ + bytes_[sample] > l_cache.capacity()) {
    return false;
  }
  is_passing_[sample] = true;
  passing_.push_back({sample, bytes_[sample]});
  passing_bytes_ += bytes_[sample];
  if (passing_bytes_ >= settings_.package_bytes) load_passing();
  return true;
}

void ICacheSystem::drop(SampleId sample) {
  cache_.drop(sample);
  if (chunks_) chunks_->drop(sample);
  if (!is_passing_[sample]) return;
  is_passing_[sample] = false;
  const auto at = std::find_if(passing_.begin(), passing_.end(),
                               [sample](const Packed& packed) { return packed.sample == sample; });
  passing_bytes_ -= at->bytes;
  passing_.erase(at);
}

std::vector<SampleId> ICacheSystem::retained() const {
  std::vector<SampleId> all;
  const HCache& h_cache = cache_.h_cache();
  for (uint32_t place = 0; place < h_cache.count(); ++place) all.push_back(h_cache.at(place));
  cache_.l_cache().append_retained(&all);
  for (const Packed& packed : passing_) all.push_back(packed.sample);
  return all;
}

void ICacheSystem::load_passing() {
  const std::vector<Packed> package = std::exchange(passing_, {});
  passing_bytes_ = 0;
  for (const Packed& packed : package) is_passing_[packed.sample] = false;
  if (!package.empty()) load(package);
}

void ICacheSystem::load(std::span<const Packed> package) {
  cache_.load(package, &more_evicted_);
  evicted_.insert(evicted_.end(), more_evicted_.begin(), more_evicted_.end());
}

float ICacheSystem::priority(SampleId sample) const {
  if (!cache_.h_cache().retained(sample)) {
    return cache_.l_cache().retained(sample) || is_passing_[sample] ? 0.5F : 0.0F;
  }
  // In an old list but not in this one: lowest of all H-samples.
  const float importance = std::max(cache_.h_cache().list().importance(sample), 0.0F);
  return 1 + importance / (1 + importance);
}

// Packages are written from missed samples. One is read as soon as no substitute is left (and one
// is allowed), before the next request: the paper's loading thread reads while the job computes.
void ICacheSystem::pack_and_load(uint32_t number, const Job& job, SampleId sample) {
  // Without values all samples are alike: the first epoch is read without packages.
  if (job.list->size() == 0) return;
  if (packer_.should_pack()) background_.written_bytes += packer_.pack(*job.list).bytes;
  if (cache_.l_cache().undelivered(number, sample) != 0 || !cache_.may_substitute(number)) return;
  const Ledger& ledger = *cache_.ledger(number);
  const Package* package = packer_.next_to_load(
      *job.list, cache_.l_cache(), [&ledger](SampleId other) { return ledger.delivered(other); });
  if (package == nullptr) return;
  count_package(package->samples, job, ledger);
  load(package->samples);
}

void ICacheSystem::count_package(std::span<const Packed> package, const Job& job,
                                 const Ledger& ledger) {
  ++background_.packages;
  for (const Packed& packed : package) {
    const bool useful = !job.list->contains(packed.sample) && !ledger.delivered(packed.sample);
    background_.bytes += packed.bytes;
    background_.useful_bytes += useful ? packed.bytes : 0;
  }
}

// The same with a chunk that was made ahead. Only what may substitute is loaded: the next packages
// evict the rest long before it is requested.
void ICacheSystem::load_chunk(uint32_t number, const Job& job, SampleId sample) {
  const LCache& l_cache = cache_.l_cache();
  if (!job.packages || job.list->size() == 0 || l_cache.undelivered(number, sample) != 0 ||
      !cache_.may_substitute(number)) {
    return;
  }
  const auto in_memory = [&](SampleId other) {
    return l_cache.retained(other) || cache_.h_cache().retained(other);
  };
  const auto useful = [&](SampleId other) {
    return !job.list->contains(other) && l_cache.may_deliver(number, other) && !in_memory(other);
  };
  const uint32_t chunk = chunks_->next_to_load(useful);
  if (chunk == kNoChunk) return;
  std::vector<Packed> package;
  uint64_t bytes = 0;
  for (const SampleId other : chunks_->members(chunk)) {
    if (!useful(other)) continue;
    bytes += chunks_->bytes(other);
    if (bytes > l_cache.capacity()) break;
    package.push_back({other, chunks_->bytes(other)});
  }
  if (package.empty()) return;
  count_package(package, job, *cache_.ledger(number));
  chunks_->loaded(chunk, package);
  load(package);
  std::erase_if(evicted_, in_memory);
}

Background ICacheSystem::background() { return std::exchange(background_, {}); }

}  // namespace sluice::policy
