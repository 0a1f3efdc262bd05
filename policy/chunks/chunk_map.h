// Which samples lie together in a chunk, and where in it (Brand, section 3.2). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/replacement/policy.h"

namespace sluice::policy {

inline constexpr uint32_t kChunkSamples = 64;  // Brand, section 5.5
inline constexpr uint32_t kNoChunk = UINT32_MAX;

// Samples in the order in which chunks hold them, cut into chunks of equally many; only the last
// one may have fewer. Immutable; 8 bytes a sample.
class ChunkMap {
 public:
  // In the order of a seeded shuffle of the samples 0 to samples - 1. REQUIRES: chunk_samples > 0.
  ChunkMap(uint32_t samples, uint32_t chunk_samples, uint64_t seed);
  // REQUIRES: `order` has each of the samples 0 to order.size() - 1 once.
  ChunkMap(std::vector<SampleId> order, uint32_t chunk_samples);

  uint32_t samples() const { return static_cast<uint32_t>(order_.size()); }
  uint32_t chunks() const { return (samples() + chunk_samples_ - 1) / chunk_samples_; }
  uint32_t chunk_samples() const { return chunk_samples_; }
  uint32_t chunk_of(SampleId sample) const { return place_[sample] / chunk_samples_; }
  uint32_t slot_of(SampleId sample) const { return place_[sample] % chunk_samples_; }
  // By slot.
  std::span<const SampleId> members(uint32_t chunk) const;

 private:
  const uint32_t chunk_samples_;
  const std::vector<SampleId> order_;
  std::vector<uint32_t> place_;  // by sample: its place in order_
};

}  // namespace sluice::policy
