// All of iCache (sections III-A to III-D): which sample is delivered for the one that a job
// requests, and which samples are retained. Pure: the caller reads, writes and loads what is
// decided here. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "policy/importance/h_cache.h"
#include "policy/importance/h_list.h"
#include "policy/importance/l_cache.h"
#include "policy/importance/labels.h"
#include "policy/importance/ledger.h"
#include "policy/importance/split.h"
#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::policy {

// What may substitute for an L-sample that is not in memory.
enum class Substitute : uint8_t {
  kNever,  // nothing (the ablation +HC)
  kL,      // an L-sample that was not delivered in this epoch (the paper's choice, ST_LC)
  kH,      // any sample of the H-cache, repeats allowed (ST_HC, for Table III)
};

// Largest share of an epoch's requests that may be substituted: each substitution leaves a sample
// untrained in its turn. The paper gives no bound; with this one the hit ratio at 20 % is still
// what the paper publishes, since the H-cache gets the memory that substitutes do not need.
inline constexpr double kMostSubstituted = 0.12;

struct ICacheSettings {
  uint64_t capacity = 0;  // bytes, of both caches together
  uint32_t samples = 0;   // of the dataset
  Substitute substitute = Substitute::kL;
  double most_substituted = kMostSubstituted;  // kL: share of an epoch's requests
  uint64_t package_bytes = kPackageBytes;
  bool l_cache = true;  // false: the H-cache has all memory
  // Packages are read from storage on demand. False: they are built from samples that were read
  // anyway, so the L-cache must have room for every substitute of an epoch.
  bool reads_packages = true;
  bool fills = false;  // the H-cache retains L-samples while it has room
  Labels labels;       // a substitute has the label of the requested sample
  uint64_t seed = 1;
};

struct Delivery {
  SampleId sample = kNoSample;  // to be delivered
  DeliveryKind kind = DeliveryKind::kMiss;
  bool retain = false;  // it is read, and retained from now on
  // It is read in a package: request and bytes are among Background's.
  bool in_package = false;
};

class ICache {
 public:
  explicit ICache(const ICacheSettings& settings);

  // The job begins an epoch with its own list, which decides what is substituted. An unknown job
  // joins. *evicted is cleared and then holds the samples that must leave memory. A sample with 0
  // in `candidates` (by sample; empty: all are candidates) is no substitute in this epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list, std::vector<SampleId>* evicted,
                   std::span<const uint8_t> candidates = {});
  void end_job(uint32_t job);
  // Overrides the settings for the job: its own labels, and whether its requests may be
  // substituted. Call before its first epoch.
  void join(uint32_t job, Labels labels, bool substitutes);
  // The list by which the H-cache retains: that of the jobs' combined importance
  // (adjusted_importance()), or, where it does not look ahead, a single job's own.
  void set_cache_list(std::shared_ptr<const HList> list) { h_.set_list(std::move(list)); }
  // A list of its own of what the next epoch will select, and what the present one is still to
  // request, see HCache.
  void set_cache_list(std::shared_ptr<HList> own, HCache::Awaited awaited) {
    h_.set_list(std::move(own), std::move(awaited));
  }
  void stop_awaiting(const HCache::Awaited& samples) { h_.stop_awaiting(samples); }
  void revise(SampleId sample, float importance) { h_.revise(sample, importance); }

  // The job requests a sample of `bytes` bytes. The returned sample counts as delivered. *evicted
  // as above. REQUIRES: the job has begun an epoch, and there is such a sample.
  Delivery request(uint32_t job, SampleId requested, uint32_t bytes,
                   std::vector<SampleId>* evicted);

  // The job reads the requested sample, whatever is in memory, and it is not retained. REQUIRES as
  // above.
  void deliver_itself(uint32_t job, SampleId requested);

  // Bytes of both caches from the next epoch on.
  void set_capacity(uint64_t bytes) { split_.set_capacity(bytes); }

  // From the next epoch on, packages of about so many bytes are read from storage on demand.
  void read_packages(uint64_t package_bytes);

  // A package was read into memory.
  void load(std::span<const Packed> package, std::vector<SampleId>* evicted);
  // The L-sample was delivered as a substitute and makes room for others.
  void retire(SampleId sample) { l_.drop(sample); }
  // A sample has changed, was removed, or is no longer in memory.
  void drop(SampleId sample);

  const HCache& h_cache() const { return h_; }
  const LCache& l_cache() const { return l_; }
  // nullptr: no such job.
  const Ledger* ledger(uint32_t job) const;
  bool is_h(uint32_t job, SampleId sample) const;
  // Whether the job's next request may be answered with a substitute.
  bool may_substitute(uint32_t job) const;

 private:
  struct Job {
    Job(uint32_t samples, Labels own) : labels(own), ledger(samples, own) {}
    Labels labels;
    bool substitutes = true;
    std::shared_ptr<const HList> list;
    Ledger ledger;
    uint64_t bytes = 0, bytes_before = 0;  // requested in this epoch, in the one before
  };

  void limit_l();
  // Removes from *evicted what either cache still retains, but for `changed`.
  void spare(SampleId changed, std::vector<SampleId>* evicted) const;
  std::optional<Delivery> l_from_memory(uint32_t number, const Job& job, SampleId requested);

  ICacheSettings settings_;
  CacheSplit split_;
  bool begins_packages_ = false;  // with the next epoch
  HCache h_;
  LCache l_;
  Random random_;
  std::map<uint32_t, Job> jobs_;
};

}  // namespace sluice::policy
