#include "policy/systems/chunk_systems.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::policy {
namespace {

uint64_t sum_of(std::span<const uint32_t> bytes, std::span<const SampleId> samples) {
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0},
                         [bytes](uint64_t sum, SampleId sample) { return sum + bytes[sample]; });
}

// Where memory is small, chunks are: a few must fit.
uint32_t chunk_samples(const SystemSettings& settings) {
  constexpr double kLeastChunks = 4;
  const uint64_t all = std::accumulate(settings.bytes.begin(), settings.bytes.end(), uint64_t{0});
  const double fit = all == 0 ? 0
                              : static_cast<double>(settings.capacity) / static_cast<double>(all) *
                                    settings.samples;
  return std::clamp(static_cast<uint32_t>(std::min(fit / kLeastChunks, 1e9)), 1U, kChunkSamples);
}

DeliveryKind kind_of(SampleId requested, SampleId delivered, bool read) {
  if (read) return requested == delivered ? DeliveryKind::kMiss : DeliveryKind::kMissOther;
  return requested == delivered ? DeliveryKind::kLExact : DeliveryKind::kSubstituted;
}

}  // namespace

ChunkSystem::ChunkSystem(const SystemSettings& settings)
    : bytes_(settings.bytes), map_(settings.samples, chunk_samples(settings), settings.seed) {}

void ChunkSystem::count(uint32_t chunk, uint64_t useful_bytes) {
  ++background_.packages;
  background_.bytes += sum_of(bytes_, map_.members(chunk));
  background_.useful_bytes += useful_bytes;
}

Background ChunkSystem::background() { return std::exchange(background_, {}); }

BrandSystem::BrandSystem(const SystemSettings& settings)
    : ChunkSystem(settings), memory_(map_, bytes_, settings.capacity, settings.seed) {}

std::vector<bool> BrandSystem::begin_epoch(uint32_t, uint32_t, std::span<const float>) {
  memory_.begin_epoch();
  return all_samples();
}

Delivery BrandSystem::request(uint32_t, SampleId sample, uint32_t) {
  const Brand::Answer answer = memory_.request(sample);
  const bool loads = answer.chunk != kNoChunk;
  if (loads) count(answer.chunk, answer.useful);
  return {.sample = answer.sample,
          .kind = kind_of(sample, answer.sample, loads || answer.alone),
          .in_package = loads};
}

PoolSystem::PoolSystem(const SystemSettings& settings)
    : ChunkSystem(settings), pool_(map_, bytes_, settings.capacity, settings.seed) {}

std::vector<bool> PoolSystem::begin_epoch(uint32_t, uint32_t, std::span<const float>) {
  pool_.begin_epoch();
  return all_samples();
}

bool PoolSystem::load_next() {
  const uint32_t chunk = pool_.next_load();
  if (chunk == kNoChunk) return false;
  count(chunk, pool_.useful_bytes(chunk));
  pool_.loaded(chunk);
  return true;
}

Delivery PoolSystem::request(uint32_t, SampleId sample, uint32_t) {
  ChunkPool::Answer answer = pool_.request(sample);
  const bool waits = answer.sample == kNoSample;
  while (answer.sample == kNoSample && load_next()) answer = pool_.request(sample);
  while (load_next()) {
  }
  return {.sample = answer.sample,
          .kind = kind_of(sample, answer.sample, waits || answer.alone),
          .in_package = waits && !answer.alone};
}

}  // namespace sluice::policy
