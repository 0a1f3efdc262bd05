// The L-cache of iCache (section III-C): L-samples that were loaded in packages, and which of them
// may substitute for another. Pure; one thread.
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

namespace sluice::policy {

struct Packed {
  SampleId sample = kNoSample;
  uint32_t bytes = 0;
};

// Samples are retained by package, in the order of loading: the oldest package is evicted, since
// its samples have been substitutes the longest. A sample of two packages belongs to the newer.
class LCache {
 public:
  // `labels` by sample: only samples of one label substitute for each other (`class`). Empty: any
  // for any. The labels outlive the cache.
  explicit LCache(uint64_t capacity, Labels labels = {}) : capacity_(capacity), labels_(labels) {}
  LCache(const LCache&) = delete;
  LCache& operator=(const LCache&) = delete;

  // A package was read into memory. *evicted is cleared and then holds what was evicted for it. The
  // last package is retained even if it exceeds the capacity: the L-cache has at least one package.
  void load(std::span<const Packed> package, std::vector<SampleId>* evicted);
  // Bytes that may be retained from now on; *evicted as above.
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted);
  // Evicts everything; *evicted as above.
  void clear(std::vector<SampleId>* evicted);
  // The sample is no longer in memory, or is retained by the H-cache now.
  void drop(SampleId sample);

  bool retained(SampleId sample) const { return places_.count(sample) != 0; }
  void append_retained(std::vector<SampleId>* samples) const {
    for (const auto& [sample, place] : places_) samples->push_back(sample);
  }
  uint64_t used() const { return used_; }  // bytes
  uint64_t capacity() const { return capacity_; }
  uint32_t count() const { return static_cast<uint32_t>(places_.size()); }

  // The job begins an epoch with this list: no sample counts as delivered, and H-samples are no
  // substitutes. REQUIRES for all below: the job has begun an epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list) {
    begin_epoch(job, std::move(list), labels_);
  }
  // The same with labels of the job's own. A sample with 0 in `candidates` (by sample; empty: all
  // are candidates) is no substitute in this epoch.
  void begin_epoch(uint32_t job, std::shared_ptr<const HList> list, Labels labels,
                   std::span<const uint8_t> candidates = {});
  void end_job(uint32_t job) { jobs_.erase(job); }
  // The sample was delivered to the job: it is no substitute until the job's next epoch.
  void delivered(uint32_t job, SampleId sample);
  // It is a candidate and was not delivered to the job in its present epoch.
  bool may_deliver(uint32_t job, SampleId sample) const {
    const std::vector<bool>& delivered = jobs_.at(job).delivered;
    return sample >= delivered.size() || !delivered[sample];
  }
  // The number of possible substitutes for `requested`: retained, of its label, not delivered in
  // the job's epoch.
  uint32_t undelivered(uint32_t job, SampleId requested) const;
  // One of them, uniformly at random; kNoSample if there is none.
  SampleId pick_substitute(uint32_t job, SampleId requested, Random* random) const;

 private:
  using Pool = std::vector<SampleId>;  // in no order
  struct Pooled {
    uint32_t label = 0, at = 0;  // which pool, where in it
  };
  struct Job {
    std::map<uint32_t, Pool> pools;              // by label: retained, not delivered in this epoch
    std::unordered_map<SampleId, Pooled> place;  // in its pool
    std::vector<bool> delivered;                 // by sample; true for non-candidates too
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
    size_t remaining = 0;  // of these, how many still belong to this package
  };

  const Pool* pool(uint32_t job, SampleId requested) const;
  void add_to(Job* job, SampleId sample);
  void remove_from(Job* job, SampleId sample);
  void shrink(std::vector<SampleId>* evicted);
  void evict_oldest(std::vector<SampleId>* evicted);
  void leave(uint64_t package);

  uint64_t capacity_;
  const Labels labels_;
  uint64_t used_ = 0;
  uint64_t loaded_ = 0;           // packages, ever
  std::deque<Package> packages_;  // by number, without gaps
  std::unordered_map<SampleId, Place> places_;
  std::map<uint32_t, Job> jobs_;
};

}  // namespace sluice::policy
