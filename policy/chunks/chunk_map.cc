#include "policy/chunks/chunk_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policy/util/random.h"

namespace sluice::policy {
namespace {

std::vector<SampleId> shuffled(uint32_t samples, uint64_t seed) {
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), 0);
  Random(mixed(seed ^ 0xc4a9c5)).shuffle(&order);
  return order;
}

std::vector<uint32_t> equal_chunks(size_t samples, uint32_t chunk_samples) {
  std::vector<uint32_t> begins;
  for (uint64_t begin = 0; begin < samples; begin += chunk_samples) {
    begins.push_back(static_cast<uint32_t>(begin));
  }
  return begins;
}

}  // namespace

ChunkMap::ChunkMap(uint32_t samples, uint32_t chunk_samples, uint64_t seed)
    : ChunkMap(shuffled(samples, seed), chunk_samples) {}

ChunkMap::ChunkMap(std::vector<SampleId> order, uint32_t chunk_samples)
    : ChunkMap(order, equal_chunks(order.size(), chunk_samples)) {}

ChunkMap::ChunkMap(std::vector<SampleId> order, std::vector<uint32_t> begins)
    : order_(std::move(order)),
      begins_(std::move(begins)),
      place_(order_.size()),
      chunk_(order_.size()) {
  begins_.push_back(samples());
  for (uint32_t chunk = 0; chunk < chunks(); ++chunk) {
    for (uint32_t place = begins_[chunk]; place < begins_[chunk + 1]; ++place) {
      place_[order_[place]] = place;
      chunk_[order_[place]] = chunk;
    }
    chunk_samples_ = std::max(chunk_samples_, begins_[chunk + 1] - begins_[chunk]);
  }
}

std::span<const SampleId> ChunkMap::members(uint32_t chunk) const {
  return std::span(order_).subspan(begins_[chunk], begins_[chunk + 1] - begins_[chunk]);
}

}  // namespace sluice::policy
