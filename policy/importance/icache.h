// iCache whole (sections III-A to III-D): which sample is served for the one that a job asks for,
// and who of them stays in memory. Pure: the caller reads, writes and loads what is decided here.
// One thread.
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

namespace sluice::optimizer {

// Who may stand in for an L-sample that is not in memory.
enum class Substitute : uint8_t {
  kNever,  // nobody: the job's own samples alone (the ablation +HC)
  kL,      // an L-sample that was not served in this epoch (the paper's choice, ST_LC)
  kH,      // any sample of the H-cache, as often as it comes (ST_HC, for Table III)
};

// Of an epoch's requests, at most: every stand-in is a sample that is not trained when its turn is.
// The paper gives no bound; with it the hit ratio at 20 % is what it publishes all the same, since
// memory that stand-ins do not need is the H-cache's.
inline constexpr double kMostSubstituted = 0.12;

struct ICacheSettings {
  uint64_t capacity = 0;  // bytes, of both caches together
  uint32_t samples = 0;   // of the dataset
  Substitute substitute = Substitute::kL;
  double most_substituted = kMostSubstituted;  // kL: of an epoch's requests
  uint64_t package_bytes = kPackageBytes;
  bool l_cache = true;  // false: all memory is the H-cache's
  // Packages are read from storage as they are wanted. False: they are put together of samples that
  // were read anyway, and there is one for each stand-in only if the L-cache has room for so many.
  bool reads_packages = true;
  Labels labels;  // stand-ins have the same
  uint64_t seed = 1;
};

struct Answer {
  SampleId sample = kNoSample;  // to be served
  Served how = Served::kMiss;
  bool keep = false;  // it was read, and stays in memory
};

class ICache {
 public:
  explicit ICache(const ICacheSettings& settings);

  // The job begins an epoch with this list of its own: it decides who stands in for whom. A job
  // that was not known joins. *evicted is cleared and then holds what must leave memory. Whoever is
  // not of `candidates` (by sample, not 0; empty: all are) stands in for nobody in this epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list, std::vector<SampleId>* evicted,
                   std::span<const uint8_t> candidates = {});
  void end_job(uint32_t job);
  // How the job is served from now on, if not as the settings say: with labels of its own, and
  // whether others may stand in. Before its first epoch.
  void join(uint32_t job, Labels labels, bool substitutes);
  // The list by which the H-cache keeps: the job's own where it stands alone, else what
  // adjusted_importance() makes of all.
  void set_cache_list(std::shared_ptr<const HList> list) { h_.set_list(std::move(list)); }

  // The job asks for a sample of `bytes` bytes. Whoever is served counts as served. *evicted as
  // above. REQUIRES: the job has begun an epoch, and there is such a sample.
  Answer request(uint32_t job, SampleId requested, uint32_t bytes, std::vector<SampleId>* evicted);

  // The job reads the sample itself, whatever is in memory, and nothing is kept of it. REQUIRES as
  // above.
  void serve_itself(uint32_t job, SampleId requested);

  // Bytes of both caches from the next epoch on.
  void set_capacity(uint64_t bytes) { split_.set_capacity(bytes); }

  // A package is in memory.
  void load(std::span<const Packed> package, std::vector<SampleId>* evicted);
  // The L-sample has stood in, and goes for others.
  void retire(SampleId sample) { l_.drop(sample); }
  // A sample was changed, removed, or is no more in memory.
  void drop(SampleId sample);

  const HCache& h_cache() const { return h_; }
  const LCache& l_cache() const { return l_; }
  // nullptr: no such job.
  const Ledger* ledger(uint32_t job) const;
  bool is_h(uint32_t job, SampleId sample) const;
  // Whether the job's next request may be answered by another sample.
  bool may_substitute(uint32_t job) const;

 private:
  struct Job {
    Job(uint32_t samples, Labels own) : labels(own), ledger(samples, own) {}
    Labels labels;
    bool substitutes = true;
    std::shared_ptr<const HList> list;
    Ledger ledger;
    uint64_t bytes = 0, bytes_before = 0;  // of the requests of the epoch, of the one before
  };

  void limit_l();
  // What one cache gave up and the other holds stays in memory.
  void spare(SampleId changed, std::vector<SampleId>* evicted) const;
  std::optional<Answer> l_from_memory(uint32_t number, const Job& job, SampleId requested);

  const ICacheSettings settings_;
  CacheSplit split_;
  HCache h_;
  LCache l_;
  Random random_;
  std::map<uint32_t, Job> jobs_;
};

}  // namespace sluice::optimizer
