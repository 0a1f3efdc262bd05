#include "policy/chunks/chunk_supply.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {
namespace {

std::variant<Brand, ChunkPool> system_of(ChunkSystemKind kind, const ChunkMap& map,
                                         std::span<const uint32_t> bytes, uint64_t capacity,
                                         uint64_t seed) {
  using System = std::variant<Brand, ChunkPool>;
  return kind == ChunkSystemKind::kBrand
             ? System(std::in_place_type<Brand>, map, bytes, capacity, seed)
             : System(std::in_place_type<ChunkPool>, map, bytes, capacity, seed);
}

}  // namespace

ChunkSupply::ChunkSupply(ChunkSystemKind kind, ChunkMap map, std::vector<uint32_t> bytes,
                         uint64_t capacity, uint64_t seed)
    : map_(std::move(map)),
      bytes_(std::move(bytes)),
      system_(system_of(kind, map_, bytes_, capacity, seed)),
      waiting_(kind == ChunkSystemKind::kPool ? map_.chunks() : 0) {}

void ChunkSupply::begin_epoch(const std::function<bool(SampleId)>& gone) {
  std::visit(
      [&](auto& system) {
        // The epoch ended before these were needed, and their chunks were not read.
        for (std::vector<SampleId>& waiting : waiting_) {
          for (const SampleId sample : std::exchange(waiting, {})) system.lost(sample);
        }
        for (SampleId sample = 0; gone && sample < map_.samples(); ++sample) {
          if (!system.in_memory(sample) || !gone(sample)) continue;
          system.lost(sample);
          ++counts_.gone;
        }
        system.begin_epoch();
      },
      system_);
}

ChunkSupply::Delivery ChunkSupply::request(SampleId requested) {
  Brand* const brand = std::get_if<Brand>(&system_);
  Delivery delivery = brand != nullptr ? from_brand(*brand, requested)
                                       : from_pool(std::get<ChunkPool>(system_), requested);
  ++counts_.deliveries;
  counts_.substituted += delivery.sample == requested ? 0 : 1;
  if (!delivery.loaded.empty()) {
    ++counts_.loads;
    counts_.loaded_samples += delivery.loaded.size();
  } else if (!delivery.in_memory) {
    ++counts_.alone;
  }
  return delivery;
}

ChunkSupply::Delivery ChunkSupply::from_brand(Brand& brand, SampleId requested) {
  Delivery delivery;
  const Brand::Answer answer = brand.request(requested, &delivery.loaded);
  delivery.sample = answer.sample;
  delivery.held = brand.holds_all() && !answer.alone;
  delivery.in_memory = answer.chunk == kNoChunk && !answer.alone;
  return delivery;
}

bool ChunkSupply::load_next(ChunkPool* pool) {
  const uint32_t chunk = pool->next_load();
  if (chunk == kNoChunk) return false;
  waiting_[chunk].clear();
  pool->loaded(chunk, &waiting_[chunk]);
  return true;
}

// The pool chooses chunks as soon as there is room; a chunk is read for the first of its samples
// that is delivered, which comes a little later.
ChunkSupply::Delivery ChunkSupply::from_pool(ChunkPool& pool, SampleId requested) {
  ChunkPool::Answer answer = pool.request(requested);
  while (answer.sample == kNoSample && load_next(&pool)) answer = pool.request(requested);
  while (load_next(&pool)) {
  }
  Delivery delivery;
  delivery.sample = answer.sample;
  delivery.held = answer.held;
  if (answer.alone) return delivery;
  std::vector<SampleId>& waiting = waiting_[map_.chunk_of(answer.sample)];
  const auto first = std::ranges::find(waiting, answer.sample);
  delivery.in_memory = first == waiting.end();
  if (!delivery.in_memory) {
    std::iter_swap(waiting.begin(), first);
    delivery.loaded = std::exchange(waiting, {});
  }
  return delivery;
}

uint64_t ChunkSupply::footprint() const {
  uint64_t waiting = waiting_.capacity() * sizeof(std::vector<SampleId>);
  for (const auto& samples : waiting_) waiting += samples.capacity() * sizeof(SampleId);
  return waiting + bytes_.capacity() * sizeof(uint32_t) +
         std::visit([](const auto& system) { return system.footprint(); }, system_);
}

}  // namespace sluice::policy
