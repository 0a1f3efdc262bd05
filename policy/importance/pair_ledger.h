// What a job trained in place of what: pairs of the sample that its sampler had drawn and of the
// substitute. Bounded, whatever the dataset: exact counts by parts of the dataset, and some of the
// pairs, of which each is equally likely to be among them (algorithm R; Vitter, "Random sampling
// with a reservoir", 1985). Pure; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::policy {

class PairLedger {
 public:
  struct Pair {
    SampleId requested, trained;
    bool operator==(const Pair&) const = default;
  };
  static constexpr uint32_t kParts = 5;  // of a dataset, by index, of equal lengths
  static constexpr size_t kMostPairs = 512;

  // REQUIRES: both are below `samples`, the length of their dataset.
  void add(Pair pair, uint64_t samples);

  uint64_t seen() const { return seen_; }
  uint64_t count(uint32_t requested_part, uint32_t trained_part) const {
    return counts_[requested_part][trained_part];
  }
  const std::vector<Pair>& pairs() const { return pairs_; }  // in no order

 private:
  uint64_t seen_ = 0;
  std::array<std::array<uint64_t, kParts>, kParts> counts_{};
  std::vector<Pair> pairs_;
  Random random_{1};
};

}  // namespace sluice::policy
