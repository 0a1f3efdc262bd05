// Which samples lie together in a chunk, and where in it (Brand, section 3.2). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

inline constexpr uint32_t kChunkSamples = 64;  // Brand, section 5.5
inline constexpr uint32_t kNoChunk = UINT32_MAX;

// Samples in the order in which chunks hold them. Immutable; 12 bytes a sample, and 4 a chunk.
class ChunkMap {
 public:
  // In the order of a seeded shuffle of the samples 0 to samples - 1, cut into chunks of equally
  // many; only the last one may have fewer. REQUIRES: chunk_samples > 0.
  ChunkMap(uint32_t samples, uint32_t chunk_samples, uint64_t seed);
  // REQUIRES: `order` has each of the samples 0 to order.size() - 1 once.
  ChunkMap(std::vector<SampleId> order, uint32_t chunk_samples);
  // Chunks that begin at these places of `order`. REQUIRES: they ascend, and the first is 0.
  ChunkMap(std::vector<SampleId> order, std::vector<uint32_t> begins);

  uint32_t samples() const { return static_cast<uint32_t>(order_.size()); }
  uint32_t chunks() const { return static_cast<uint32_t>(begins_.size()) - 1; }
  uint32_t chunk_samples() const { return chunk_samples_; }  // of the largest
  uint32_t chunk_of(SampleId sample) const { return chunk_[sample]; }
  uint32_t slot_of(SampleId sample) const { return place_[sample] - begins_[chunk_[sample]]; }
  // By slot.
  std::span<const SampleId> members(uint32_t chunk) const;

 private:
  const std::vector<SampleId> order_;
  std::vector<uint32_t> begins_;  // by chunk, and the end of the last
  std::vector<uint32_t> place_;   // by sample: its place in order_
  std::vector<uint32_t> chunk_;   // by sample
  uint32_t chunk_samples_ = 0;
};

}  // namespace sluice::policy
