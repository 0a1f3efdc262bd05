// The policy that chooses a policy. Pure; see policy.h. With a million samples and more, at most 2
// bytes a sample more than the chosen policy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

// Uses belady as long as an order is known ahead. Without one it begins with minio, which under a
// uniform reshuffle is as good as any policy that does not know the order (with a cache of a
// fraction c the hit ratio is c; of LRU at 20 % it is 2 %). Other patterns are measured: small
// models of minio, lru and lfu simulate a part of the samples with the same part of the capacity,
// and after every pass the one that would have saved most bytes is chosen, if it is clearly better.
class AutoPolicy : public Policy {
 public:
  AutoPolicy(uint64_t capacity, uint32_t samples);

  Decision access(uint32_t job, SampleId sample, uint64_t bytes,
                  std::vector<SampleId>* evicted) override;
  Decision offer(SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted) override {
    end_ = std::max(end_, sample + 1);
    return now_->offer(sample, bytes, evicted);
  }
  void passed(SampleId sample) override { now_->passed(sample); }
  void drop(SampleId sample) override;
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted) override;
  bool retained(SampleId sample) const override { return now_->retained(sample); }
  uint64_t retained_bytes(SampleId sample) const override { return now_->retained_bytes(sample); }
  uint64_t used() const override { return now_->used(); }
  uint64_t capacity() const override { return now_->capacity(); }
  uint64_t footprint() const override;
  void begin_epoch(uint32_t job) override { now_->begin_epoch(job); }
  void end_job(uint32_t job) override { now_->end_job(job); }
  void append_order(std::span<const SampleId> order) override;
  void clear_order() override;

  const char* chosen() const;  // a name of the table, static

 private:
  enum Choice : uint8_t { kMinIo, kLru, kLfu, kModels, kBelady = kModels };

  struct Model {
    std::unique_ptr<Policy> policy;
    uint64_t saved = 0;  // bytes of hits in this pass
  };

  static std::unique_ptr<Policy> make(Choice choice, uint64_t capacity, uint32_t samples);
  bool modelled(SampleId sample) const;
  void observe(SampleId sample, uint64_t bytes);
  void judge();
  void change_to(Choice choice);

  const unsigned shift_;  // models see one sample in 2^shift_
  Choice choice_ = kMinIo;
  Choice best_ = kMinIo;  // of the models
  bool ordered_ = false;  // an order is known ahead
  std::unique_ptr<Policy> now_;
  SampleId end_ = 0;  // above all samples that were seen
  Model models_[kModels];
  uint64_t accesses_ = 0, requested_ = 0;  // of the models in this pass; requested_ in bytes
  std::vector<SampleId> scratch_;
};

}  // namespace sluice::policy
