// The complete iCache (HPCA '23): selection, lists, caches and packages. The request that makes
// work of its packaging and loading threads due performs that work. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policy/importance/choice.h"
#include "policy/importance/chunk_packages.h"
#include "policy/importance/icache.h"
#include "policy/importance/packer.h"
#include "policy/importance/system.h"

namespace sluice::policy {

class ICacheSystem : public System {
 public:
  // `l_cache` false: the H-cache alone.
  ICacheSystem(const SystemSettings& settings, Substitute substitute, bool l_cache);

  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override;
  // See ICache::join(). Jobs of one team (0: of none) are ranks that train one model: their values
  // are directly comparable, and each has its own part of the samples.
  // `packages`: where there are any, see set_packages().
  void join(uint32_t job, Labels labels, bool substitutes, uint64_t team = 0,
            bool packages = false) {
    cache_.join(job, labels, substitutes);
    jobs_[job].substitutes = substitutes;
    jobs_[job].packages = packages;
    jobs_[job].team = team;
  }
  // begin_epoch() with the result of choose(). A sample that is no candidate is no substitute.
  // `candidates` and `chosen` of `choice` remain; values and lists are moved out of it.
  void begin_chosen(uint32_t job, EpochChoice* choice);
  void end_job(uint32_t job) override;
  // Where it is looked ahead the sample may be retained for its value, or not any more.
  void observe(uint32_t job, SampleId sample, float value) override;
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override;
  // request() for a sample that cannot be retained: it is delivered itself.
  void deliver_itself(uint32_t job, SampleId sample) {
    read_in_package_.clear();
    cache_.deliver_itself(job, sample);
  }
  Background background() override;
  // From the next epoch on, packages are these chunks, read on demand, for jobs that any sample may
  // substitute in. REQUIRES: as many samples.
  void set_packages(std::shared_ptr<const ChunkMap> map, std::vector<uint32_t> bytes);
  // The package that is to be read for the last request(): first the delivered sample, then others
  // that are in memory from then on. Empty: none is.
  std::span<const SampleId> read_in_package() const { return read_in_package_; }
  // The sample for which the package is read that brings this one, or was read last; kNoSample:
  // that is not decided yet; nullopt: no package brings it.
  std::optional<SampleId> comes_with(SampleId sample) const;
  // Samples that must leave memory by the last begin_epoch(), begin_chosen() or request().
  std::span<const SampleId> evicted() const { return evicted_; }
  void set_capacity(uint64_t bytes) { cache_.set_capacity(bytes); }
  // The sample's retention priority, for a store with less room than was promised: H-samples above
  // L-samples, and all retained samples above 0.
  float priority(SampleId sample) const;
  // The same of one that a package brings, until it is delivered: above that of the L-samples that
  // make room for it, which leave memory only as the reads go on.
  float priority_of_brought(SampleId sample) const { return std::max(priority(sample), 0.75F); }
  // The sample is not in memory after all.
  void drop(SampleId sample);
  // Samples that are retained by decisions made here, each once or twice, in no order.
  std::vector<SampleId> retained() const;

  // The job's benefit from the cache (section III-D): its weight where several jobs share it. 1 for
  // a job that was not probed.
  void set_benefit(uint32_t job, double benefit);
  double benefit(uint32_t job) const;
  const ICache& cache() const { return cache_; }
  uint32_t samples() const { return settings_.samples; }
  double h_share() const { return settings_.h_share; }

 private:
  struct Job {
    std::shared_ptr<Selector> selector;
    std::vector<float> values;
    std::vector<HListEntry> top;  // the entries of `list`
    // Where it is looked ahead: the epoch after this one, and what this one offers and selects.
    std::shared_ptr<const Coming> coming;
    std::shared_ptr<HList> coming_list;
    std::vector<uint8_t> candidates;
    HCache::Awaited chosen;
    std::shared_ptr<const HList> list;
    std::vector<float> relative;  // RIV of `values`, where several jobs share the cache
    double benefit = 1;
    bool probed = false;
    bool substitutes = true;
    bool packages = false;
    uint64_t team = 0;
  };
  bool is_one_team() const;
  std::shared_ptr<const HList> list_of_team() const;
  void look_ahead(const Job& job, const HCache::Awaited& before);
  void choose_cache_list(const Job& begun, const HCache::Awaited& before);
  void pack_and_load(uint32_t number, const Job& job, SampleId sample);
  void load_chunk(uint32_t number, const Job& job, SampleId sample);
  void count_package(std::span<const Packed> package, const Job& job, const Ledger& ledger);
  bool retain_in_passing(const Job& job, SampleId sample);
  void load_passing();
  void load(std::span<const Packed> package);

  SystemSettings settings_;
  const bool packs_;
  std::vector<uint32_t> bytes_;  // by sample; 0: not known, it was never requested
  ICache cache_;
  Packer packer_;
  std::optional<ChunkPackages> chunks_;  // the packages, instead of the packer's
  std::vector<SampleId> read_in_package_;
  std::map<uint32_t, Job> jobs_;
  Background background_;
  std::vector<SampleId> evicted_, more_evicted_;
  std::vector<Packed> passing_;   // the package that is being built from samples that were read
  std::vector<bool> is_passing_;  // by sample: in it
  uint64_t passing_bytes_ = 0;
};

}  // namespace sluice::policy
