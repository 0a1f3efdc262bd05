#include "policy/importance/l_cache.h"

#include <cstddef>
#include <utility>

namespace sluice::policy {

void LCache::load(std::span<const Packed> package, std::vector<SampleId>* evicted) {
  evicted->clear();
  Package loaded{++loaded_, {}, 0};
  for (const Packed& packed : package) {
    Place& place = places_[packed.sample];
    const bool is_new = place.package == 0;
    used_ += packed.bytes;
    used_ -= place.bytes;
    if (place.package != loaded.number) {
      if (!is_new) leave(place.package);
      loaded.samples.push_back(packed.sample);
      ++loaded.remaining;
    }
    place = {loaded.number, packed.bytes};
    if (!is_new) continue;
    for (auto& [number, job] : jobs_) add_to(&job, packed.sample);
  }
  packages_.push_back(std::move(loaded));
  shrink(evicted);
}

// A sample no longer belongs to the package. A package without samples takes no memory.
void LCache::leave(uint64_t number) {
  if (packages_.empty() || number < packages_.front().number) return;
  Package& package = packages_[number - packages_.front().number];
  if (--package.remaining == 0) package.samples = {};
  while (packages_.size() > 1 && packages_.front().remaining == 0) packages_.pop_front();
}

void LCache::set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) {
  evicted->clear();
  capacity_ = bytes;
  shrink(evicted);
}

void LCache::shrink(std::vector<SampleId>* evicted) {
  while (used_ > capacity_ && packages_.size() > 1) evict_oldest(evicted);
}

void LCache::clear(std::vector<SampleId>* evicted) {
  evicted->clear();
  while (!packages_.empty()) evict_oldest(evicted);
}

void LCache::evict_oldest(std::vector<SampleId>* evicted) {
  const Package oldest = std::move(packages_.front());
  packages_.pop_front();
  for (const SampleId sample : oldest.samples) {
    const auto at = places_.find(sample);
    if (at == places_.end() || at->second.package != oldest.number) continue;
    evicted->push_back(sample);
    drop(sample);
  }
}

void LCache::drop(SampleId sample) {
  const auto at = places_.find(sample);
  if (at == places_.end()) return;
  used_ -= at->second.bytes;
  const uint64_t package = at->second.package;
  places_.erase(at);
  leave(package);
  for (auto& [number, job] : jobs_) remove_from(&job, sample);
}

void LCache::begin_epoch(uint32_t number, std::shared_ptr<const HList> list, Labels labels,
                         std::span<const uint8_t> candidates) {
  Job& job = jobs_[number];
  job = {};
  job.list = std::move(list);
  job.labels = labels;
  job.delivered.resize(candidates.size());
  for (size_t sample = 0; sample < candidates.size(); ++sample) {
    if (candidates[sample] == 0) job.delivered[sample] = true;
  }
  for (const Package& package : packages_) {
    for (const SampleId sample : package.samples) {
      const auto at = places_.find(sample);
      if (at != places_.end() && at->second.package == package.number) add_to(&job, sample);
    }
  }
}

void LCache::delivered(uint32_t number, SampleId sample) {
  Job& job = jobs_.at(number);
  if (sample >= job.delivered.size()) job.delivered.resize(size_t{sample} + 1);
  job.delivered[sample] = true;
  remove_from(&job, sample);
}

const LCache::Pool* LCache::pool(uint32_t number, SampleId requested) const {
  const Job& job = jobs_.at(number);
  const uint32_t label = job.labels.of(requested);
  const auto at = label == kUnknownLabel ? job.pools.end() : job.pools.find(label);
  return at == job.pools.end() || at->second.empty() ? nullptr : &at->second;
}

uint32_t LCache::undelivered(uint32_t job, SampleId requested) const {
  const Pool* const found = pool(job, requested);
  return found == nullptr ? 0 : static_cast<uint32_t>(found->size());
}

SampleId LCache::pick_substitute(uint32_t job, SampleId requested, Random* random) const {
  const Pool* const found = pool(job, requested);
  if (found == nullptr) return kNoSample;
  return (*found)[random->below(static_cast<uint32_t>(found->size()))];
}

void LCache::add_to(Job* job, SampleId sample) {
  if ((sample < job->delivered.size() && job->delivered[sample]) || job->list->contains(sample))
    return;
  const uint32_t label = job->labels.of(sample);
  Pool& pool = job->pools[label];
  const Pooled place{label, static_cast<uint32_t>(pool.size())};
  if (job->place.emplace(sample, place).second) pool.push_back(sample);
}

void LCache::remove_from(Job* job, SampleId sample) {
  const auto at = job->place.find(sample);
  if (at == job->place.end()) return;
  const Pooled place = at->second;
  Pool& pool = job->pools[place.label];
  job->place.erase(at);
  if (pool.back() != sample) {
    pool[place.at] = pool.back();
    job->place[pool[place.at]] = place;
  }
  pool.pop_back();
}

}  // namespace sluice::policy
