#include "policy/systems/table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policy/importance/icache_system.h"
#include "policy/importance/ledger.h"
#include "policy/replacement/lfu.h"
#include "policy/replacement/list_policies.h"
#include "policy/replacement/quiver.h"
#include "policy/systems/chunk_systems.h"

namespace sluice::policy {
namespace {

// Each request gets its own sample; a policy decides which are retained. With or without selection.
class Plain : public System {
 public:
  Plain(std::unique_ptr<Policy> policy, const SystemSettings& settings, bool selects)
      : policy_(std::move(policy)),
        settings_(settings),
        selector_(selects ? find_selector("loss") : nullptr) {}

  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override {
    policy_->begin_epoch(job);
    if (selector_ == nullptr) return std::vector<bool>(settings_.samples, true);
    const auto [at, added] = selectors_.try_emplace(job);
    if (added) at->second = selector_->make(settings_.selection);
    return at->second->select(epoch, values);
  }
  void end_job(uint32_t job) override {
    policy_->end_job(job);
    selectors_.erase(job);
  }
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override {
    const Decision decision = policy_->access(job, sample, bytes, &evicted_);
    return {sample, decision == Decision::kHit ? DeliveryKind::kLExact : DeliveryKind::kMiss,
            decision == Decision::kRetain};
  }

 private:
  const std::unique_ptr<Policy> policy_;
  const SystemSettings settings_;
  const SelectorInfo* const selector_;                       // nullptr: every sample is requested
  std::map<uint32_t, std::unique_ptr<Selector>> selectors_;  // by job
  std::vector<SampleId> evicted_;
};

// Everything is in memory.
class Oracle : public System {
 public:
  explicit Oracle(const SystemSettings& settings)
      : selector_(find_selector("loss")->make(settings.selection)) {}
  std::vector<bool> begin_epoch(uint32_t, uint32_t epoch, std::span<const float> values) override {
    return selector_->select(epoch, values);
  }
  void end_job(uint32_t) override {}
  Delivery request(uint32_t, SampleId sample, uint32_t) override {
    return {sample, DeliveryKind::kLExact, false};
  }

 private:
  const std::unique_ptr<Selector> selector_;
};

// Quiver (FAST '20), as iCache describes it: for a sample that is not in memory, one is substituted
// that is and that the job has not read in its epoch, whatever its importance; eviction is
// coordinated among the jobs. An epoch delivers all of its samples, so displaced ones come later.
class Substituting : public System {
 public:
  explicit Substituting(const SystemSettings& settings)
      : settings_(settings),
        policy_(settings.capacity, settings.samples),
        random_(mixed(settings.seed)),
        sizes_(settings.samples) {}

  std::vector<bool> begin_epoch(uint32_t number, uint32_t, std::span<const float>) override {
    policy_.begin_epoch(number);
    Job& job = jobs_.try_emplace(number, settings_.samples).first->second;
    job.ledger.begin_epoch();
    job.pool.clear();
    for (SampleId sample = 0; sample < settings_.samples; ++sample) {
      if (policy_.retained(sample)) job.pool.push_back(sample);
    }
    return std::vector<bool>(settings_.samples, true);
  }
  void end_job(uint32_t number) override {
    policy_.end_job(number);
    jobs_.erase(number);
  }
  Delivery request(uint32_t number, SampleId sample, uint32_t bytes) override {
    Job& job = jobs_.at(number);
    Delivery delivery{sample, DeliveryKind::kMiss};
    if (!job.ledger.delivered(sample) && policy_.retained(sample)) {
      delivery.kind = DeliveryKind::kLExact;
    } else if (const SampleId other = pick_substitute(&job); other != kNoSample) {
      delivery = {other, DeliveryKind::kSubstituted};
    } else if (job.ledger.delivered(sample)) {
      const SampleId due = job.ledger.displaced(sample);
      if (due != kNoSample) delivery = {due, DeliveryKind::kMissOther};
    }
    sizes_[sample] = bytes;
    const Decision decision =
        policy_.access(number, delivery.sample, sizes_[delivery.sample], &evicted_);
    delivery.retain = decision == Decision::kRetain;
    job.ledger.deliver(sample, delivery.sample, delivery.kind);
    return delivery;
  }

 private:
  struct Job {
    explicit Job(uint32_t samples) : ledger(samples) {}
    Ledger ledger;
    std::vector<SampleId> pool;  // retained at the epoch's start; some are delivered or evicted now
  };
  SampleId pick_substitute(Job* job) {
    while (!job->pool.empty()) {
      std::swap(job->pool[random_.below(job->pool.size())], job->pool.back());
      const SampleId sample = job->pool.back();
      job->pool.pop_back();
      if (policy_.retained(sample) && !job->ledger.delivered(sample)) return sample;
    }
    return kNoSample;
  }

  const SystemSettings settings_;
  Quiver policy_;
  Random random_;
  std::vector<uint32_t> sizes_;  // of samples that were requested
  std::map<uint32_t, Job> jobs_;
  std::vector<SampleId> evicted_;
};

template <typename Kind, bool kSelects>
std::unique_ptr<System> plain(const SystemSettings& settings) {
  return std::make_unique<Plain>(std::make_unique<Kind>(settings.capacity, settings.samples),
                                 settings, kSelects);
}

template <typename Kind>
std::unique_ptr<System> whole(const SystemSettings& settings) {
  return std::make_unique<Kind>(settings);
}

std::unique_ptr<System> in_passing(const SystemSettings& settings) {
  SystemSettings own = settings;
  own.reads_packages = false;
  own.fills = true;
  own.looks_ahead = true;
  return std::make_unique<ICacheSystem>(own, Substitute::kL, true);
}

template <Substitute kSubstitute, bool kLCache>
std::unique_ptr<System> icache(const SystemSettings& settings) {
  return std::make_unique<ICacheSystem>(settings, kSubstitute, kLCache);
}

constexpr SystemInfo kSystems[] = {
    {"default", "every sample, LRU", false, plain<Lru, false>},
    {"base", "every sample is fetched, the important ones are computed; LRU", false,
     plain<Lru, false>},
    {"quiver", "every sample; any that is in memory is a substitute", false, whole<Substituting>},
    {"coordl", "every sample, nothing is evicted", false, plain<MinIo, false>},
    {"ilfu", "IIS, LFU", true, plain<Lfu, true>},
    {"iis", "IIS, LRU (iCache's ablation +IIS)", true, plain<Lru, true>},
    {"hc", "IIS and the H-cache (+HC)", true, icache<Substitute::kNever, false>},
    {"icache", "IIS, H-cache and L-cache; an L-sample may substitute for another", true,
     icache<Substitute::kL, true>},
    {"sluice", "the same, substitutes were read in passing: no packages are read", true,
     in_passing},
    {"icache-h",
     "the same, but a retained H-sample substitutes for an L-sample, repeats allowed (ST_HC)", true,
     icache<Substitute::kH, true>},
    {"brand", "every sample; chunks fill an abstract memory, whose samples are delivered (Brand)",
     false, whole<BrandSystem>},
    {"pool", "every sample; each chunk is read once at most, into a pool", false,
     whole<PoolSystem>},
    {"oracle", "IIS, and everything is in memory", true, whole<Oracle>},
};

}  // namespace

std::span<const SystemInfo> systems() { return kSystems; }

const SystemInfo* find_system(std::string_view name) {
  for (const SystemInfo& info : kSystems) {
    if (name == info.name) return &info;
  }
  return nullptr;
}

}  // namespace sluice::policy
