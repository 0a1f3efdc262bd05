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

}  // namespace

ChunkMap::ChunkMap(uint32_t samples, uint32_t chunk_samples, uint64_t seed)
    : ChunkMap(shuffled(samples, seed), chunk_samples) {}

ChunkMap::ChunkMap(std::vector<SampleId> order, uint32_t chunk_samples)
    : chunk_samples_(chunk_samples), order_(std::move(order)), place_(order_.size()) {
  for (uint32_t place = 0; place < samples(); ++place) place_[order_[place]] = place;
}

std::span<const SampleId> ChunkMap::members(uint32_t chunk) const {
  const size_t begin = static_cast<size_t>(chunk) * chunk_samples_;
  return std::span(order_).subspan(begin, std::min<size_t>(chunk_samples_, order_.size() - begin));
}

}  // namespace sluice::policy
