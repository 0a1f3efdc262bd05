// The part of a dataset that one rank of a job trains: consecutive samples in the order of the
// chunks, so that ranks, also on several hosts, share no chunk but those at the ends of their
// parts, and need not ask each other. Pure; immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/chunks/chunk_map.h"
#include "policy/replacement/policy.h"

namespace sluice::policy {

class ChunkPart {
 public:
  // Parts of the ranks differ by one sample at most. REQUIRES: rank < ranks.
  ChunkPart(const ChunkMap& all, uint32_t rank, uint32_t ranks);

  uint32_t samples() const { return static_cast<uint32_t>(samples_.size()); }
  // The part's chunks, of numbers of its samples.
  ChunkMap map() const { return {numbers_in_order(), begins_}; }
  // By number within the part.
  SampleId sample(SampleId number) const { return samples_[number]; }
  SampleId number_of(SampleId sample) const { return numbers_[sample]; }  // REQUIRES: contains()
  bool contains(SampleId sample) const { return numbers_[sample] != kNoSample; }

 private:
  std::vector<SampleId> numbers_in_order() const;

  std::vector<SampleId> samples_;  // in the order of the chunks
  std::vector<uint32_t> begins_;   // of chunks, in samples_
  std::vector<SampleId> numbers_;  // by sample of the dataset; kNoSample: not in the part
};

}  // namespace sluice::policy
