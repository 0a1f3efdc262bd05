#include "tests/unit/policy_models.h"

#include <algorithm>
#include <tuple>

namespace sluice::policy {
namespace {

uint64_t sum(const auto& retained) {
  uint64_t bytes = 0;
  for (const auto& [sample, entry] : retained) bytes += entry.bytes;
  return bytes;
}

}  // namespace

uint64_t PolicyModel::used() const { return sum(retained_); }

bool PolicyModel::wanted(SampleId sample) const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](uint32_t job) { return had_by_job_.at(job).count(sample) == 0; });
}

size_t PolicyModel::next_use(SampleId sample) const {
  return static_cast<size_t>(std::find(future_.begin(), future_.end(), sample) - future_.begin());
}

SampleId PolicyModel::victim(const RetainedMap& retained, SampleId newcomer) const {
  const bool shrinking = newcomer == kNoSample;
  // The least of these is evicted; the newcomer's must be greater, where that is asked.
  using Worth = std::tuple<double, double, SampleId>;
  auto worth = [&](SampleId sample, const Retained& entry) -> Worth {
    const auto last = last_access_.count(sample) != 0 ? last_access_.at(sample) : 0;
    if (name_ == "lru") return {last, 0, sample};
    if (name_ == "fifo") return {entry.arrived, 0, sample};
    if (name_ == "lfu") return {count_.at(sample), last, sample};
    if (name_ == "minio") return {-static_cast<double>(entry.arrived), 0, sample};
    if (name_ == "shade") {
      return {importance_.count(sample) != 0 ? importance_.at(sample) : 0, 0, sample};
    }
    if (name_ == "belady") {
      const size_t next = next_use(sample);
      return {next == future_.size() ? -1e18 : -static_cast<double>(next), 0, sample};
    }
    if (name_ == "needed") {
      const size_t next = next_use(sample);
      if (next != future_.size()) return {1, -static_cast<double>(next), sample};
      return {0, importance_.count(sample) != 0 ? importance_.at(sample) : 0, sample};
    }
    const auto listed = static_cast<double>(entry.listed);  // quiver
    return wanted(sample) ? Worth{1, -listed, sample} : Worth{0, listed, sample};
  };
  if (name_ == "minio" && !shrinking) return kNoSample;
  if (name_ == "quiver" && !shrinking && !wanted(newcomer)) return kNoSample;
  SampleId least = kNoSample;
  for (const auto& [sample, entry] : retained) {
    if (name_ == "quiver" && !shrinking && wanted(sample)) continue;
    if (least == kNoSample || worth(sample, entry) < worth(least, retained.at(least))) {
      least = sample;
    }
  }
  const bool judges = name_ == "shade" || name_ == "belady" || name_ == "needed";
  if (least != kNoSample && !shrinking && judges) {
    const auto [evicted, rather, one] = worth(least, {});
    const auto [stays, more, other] = worth(newcomer, {});
    if (std::tie(evicted, rather) >= std::tie(stays, more)) return kNoSample;
  }
  return least;
}

Decision PolicyModel::access(uint32_t job, SampleId sample, uint64_t bytes,
                             std::vector<SampleId>* evicted) {
  evicted->clear();
  ++now_;
  last_access_[sample] = now_;
  ++count_[sample];
  const bool was_wanted = wanted(sample);
  if (jobs_.count(job) != 0) had_by_job_[job].insert(sample);
  passed(sample);
  auto found = retained_.find(sample);
  if (found != retained_.end()) {
    if (was_wanted && !wanted(sample)) found->second.listed = now_;
    if (found->second.bytes == bytes) return Decision::kHit;
    retained_.erase(found);
    evicted->push_back(sample);
  }
  if (bytes > capacity_) return Decision::kPass;
  RetainedMap after = retained_;
  std::vector<SampleId> losers;
  while (sum(after) + bytes > capacity_) {
    const SampleId loser = victim(after, sample);
    if (loser == kNoSample) return Decision::kPass;
    after.erase(loser);
    losers.push_back(loser);
  }
  retained_ = after;
  retained_[sample] = {bytes, now_, now_};
  evicted->insert(evicted->end(), losers.begin(), losers.end());
  return Decision::kRetain;
}

void PolicyModel::set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) {
  evicted->clear();
  capacity_ = bytes;
  while (used() > capacity_) {
    evicted->push_back(victim(retained_, kNoSample));
    retained_.erase(evicted->back());
  }
}

void PolicyModel::begin_epoch(uint32_t job) {
  std::vector<std::pair<uint64_t, SampleId>> unwanted;
  for (const auto& [sample, entry] : retained_) {
    if (!wanted(sample)) unwanted.emplace_back(entry.listed, sample);
  }
  std::sort(unwanted.begin(), unwanted.end());
  for (const auto& [listed, sample] : unwanted) retained_[sample].listed = ++now_;
  jobs_.insert(job);
  had_by_job_[job].clear();
}

void PolicyModel::end_job(uint32_t job) {
  std::set<SampleId> before;
  for (const auto& [sample, entry] : retained_) {
    if (wanted(sample)) before.insert(sample);
  }
  jobs_.erase(job);
  for (const SampleId sample : before) {
    if (!wanted(sample)) retained_[sample].listed = ++now_;
  }
}

}  // namespace sluice::policy
