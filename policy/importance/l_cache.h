// The L-cache of iCache (section III-C): unimportant samples that were loaded in packages, and who
// of them may stand in for another. Pure; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/importance/h_list.h"
#include "policy/importance/labels.h"
#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::optimizer {

struct Packed {
  SampleId sample = kNoSample;
  uint32_t bytes = 0;
};

// What is kept is kept by package, in the order of loading: the oldest goes, since it is the one
// whose samples have stood in the longest. A sample that two packages hold is kept with the newer.
class LCache {
 public:
  // `labels` by sample: only samples of one label stand in for each other (`class`). Empty: any
  // for any. They outlive the cache.
  explicit LCache(uint64_t capacity, Labels labels = {}) : capacity_(capacity), labels_(labels) {}
  LCache(const LCache&) = delete;
  LCache& operator=(const LCache&) = delete;

  // A package was read into memory. *evicted is cleared and then holds what went for it. The last
  // package stays even if it alone is above the capacity: the L-cache is never below one package.
  void load(std::span<const Packed> package, std::vector<SampleId>* evicted);
  // Bytes that may be kept from now on; *evicted as above.
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted);
  // The sample is no more in memory, or it matters now and is kept elsewhere.
  void drop(SampleId sample);

  bool kept(SampleId sample) const { return places_.count(sample) != 0; }
  void append_kept(std::vector<SampleId>* samples) const {
    for (const auto& [sample, place] : places_) samples->push_back(sample);
  }
  uint64_t used() const { return used_; }  // bytes
  uint64_t capacity() const { return capacity_; }
  uint32_t count() const { return static_cast<uint32_t>(places_.size()); }

  // The job has been given nothing of its new epoch yet, and this is its list: what has become an
  // H-sample stands in for nobody. REQUIRES for all below: the job has begun an epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list) {
    begin_epoch(job, std::move(list), labels_);
  }
  // The same of a job whose samples have other labels. Whoever is not of `candidates` (by sample,
  // not 0; empty: all are) stands in for nobody in this epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list, Labels labels,
                   std::span<const uint8_t> candidates = {});
  void end_job(uint32_t job) { jobs_.erase(job); }
  // The job has been given the sample: it stands in for nobody until the job's next epoch.
  void served(uint32_t job, SampleId sample);
  // Samples that may stand in for `requested`: kept, of its label, not served in the job's epoch.
  uint32_t unserved(uint32_t job, SampleId requested) const;
  // One of them, each as likely as every other; kNoSample if there is none.
  SampleId stand_in(uint32_t job, SampleId requested, Random* random) const;

 private:
  using Pool = std::vector<SampleId>;  // in no order
  struct Pooled {
    uint32_t label = 0, at = 0;  // which pool, where in it
  };
  struct Job {
    std::map<uint32_t, Pool> pools;              // by label: kept, and not served in this epoch
    std::unordered_map<SampleId, Pooled> place;  // in its pool
    std::vector<bool> served;                    // by sample; those too that are no candidates
    std::shared_ptr<const HList> list;
    Labels labels;
  };
  struct Place {
    uint64_t package = 0;  // its number
    uint32_t bytes = 0;
  };
  struct Package {
    uint64_t number = 0;
    std::vector<SampleId> samples;
    size_t kept = 0;  // of them, with this package
  };

  const Pool* pool(uint32_t job, SampleId requested) const;
  void add_to(Job* job, SampleId sample);
  void remove_from(Job* job, SampleId sample);
  void shrink(std::vector<SampleId>* evicted);
  void leave(uint64_t package);

  uint64_t capacity_;
  const Labels labels_;
  uint64_t used_ = 0;
  uint64_t loaded_ = 0;           // packages, ever
  std::deque<Package> packages_;  // by number, without gaps
  std::unordered_map<SampleId, Place> places_;
  std::map<uint32_t, Job> jobs_;
};

}  // namespace sluice::optimizer
