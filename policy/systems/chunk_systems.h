// Systems that read chunks: Brand, and the pool. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/chunks/brand.h"
#include "policy/chunks/chunk_map.h"
#include "policy/chunks/pool.h"
#include "policy/importance/system.h"

namespace sluice::policy {

// What both have in common. One job: with several each would need chunks and memory of its own.
// REQUIRES: settings.bytes has every sample.
class ChunkSystem : public System {
 public:
  void end_job(uint32_t) override {}
  Background background() override;

 protected:
  explicit ChunkSystem(const SystemSettings& settings);
  // Counts a chunk that is read, of which so many bytes are retained or delivered.
  void count(uint32_t chunk, uint64_t useful_bytes);
  std::vector<bool> all_samples() const { return std::vector<bool>(map_.samples(), true); }

  const std::span<const uint32_t> bytes_;
  const ChunkMap map_;

 private:
  Background background_;
};

class BrandSystem : public ChunkSystem {
 public:
  explicit BrandSystem(const SystemSettings& settings);
  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override;
  // A chunk is read when a request finds nothing at its place.
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override;

 private:
  Brand memory_;
};

class PoolSystem : public ChunkSystem {
 public:
  explicit PoolSystem(const SystemSettings& settings);
  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override;
  // Chunks are read as soon as a request has made room for them.
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override;

 private:
  bool load_next();

  ChunkPool pool_;
};

}  // namespace sluice::policy
