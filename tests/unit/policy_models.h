// Replacement policies done the slow and obvious way: everything is found by searching what is
// retained and what has happened. What optimizer/policies decides must be the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

class PolicyModel {
 public:
  PolicyModel(std::string name, uint64_t capacity) : name_(std::move(name)), capacity_(capacity) {}

  Decision access(uint32_t job, SampleId sample, uint64_t bytes, std::vector<SampleId>* evicted);
  void drop(SampleId sample) { retained_.erase(sample); }
  void set_capacity(uint64_t bytes, std::vector<SampleId>* evicted);
  void begin_epoch(uint32_t job);
  void end_job(uint32_t job);
  void append_order(std::span<const SampleId> order) {
    future_.insert(future_.end(), order.begin(), order.end());
  }
  void clear_order() { future_.clear(); }
  void passed(SampleId sample) {
    const auto next = std::find(future_.begin(), future_.end(), sample);
    if (next != future_.end()) future_.erase(next);
  }
  void set_importance(SampleId sample, float importance) { importance_[sample] = importance; }

  bool retained(SampleId sample) const { return retained_.count(sample) != 0; }
  uint64_t used() const;

 private:
  struct Retained {
    uint64_t bytes = 0;
    uint64_t arrived = 0;
    uint64_t listed = 0;  // quiver: when it came to be wanted, or unwanted
  };
  using RetainedMap = std::map<SampleId, Retained>;

  bool wanted(SampleId sample) const;
  size_t next_use(SampleId sample) const;
  SampleId victim(const RetainedMap& retained, SampleId newcomer) const;

  const std::string name_;
  uint64_t capacity_;
  uint64_t now_ = 0;
  RetainedMap retained_;
  std::map<SampleId, uint64_t> last_access_, count_;
  std::map<SampleId, float> importance_;
  std::set<uint32_t> jobs_;                            // quiver: in an epoch
  std::map<uint32_t, std::set<SampleId>> had_by_job_;  // quiver: in that epoch
  std::vector<SampleId> future_;
};

}  // namespace sluice::policy
