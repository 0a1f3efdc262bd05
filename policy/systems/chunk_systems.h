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

// One job: with several each would need chunks and memory of its own. REQUIRES, of both systems:
// settings.bytes has every sample.
class BrandSystem : public System {
 public:
  explicit BrandSystem(const SystemSettings& settings);
  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override;
  void end_job(uint32_t) override {}
  // A chunk is read when a request finds nothing at its place.
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override;
  Background background() override;

 private:
  const std::span<const uint32_t> bytes_;
  const ChunkMap map_;
  Brand memory_;
  Background background_;
};

class PoolSystem : public System {
 public:
  explicit PoolSystem(const SystemSettings& settings);
  std::vector<bool> begin_epoch(uint32_t job, uint32_t epoch,
                                std::span<const float> values) override;
  void end_job(uint32_t) override {}
  // Chunks are read as soon as a request has made room for them.
  Delivery request(uint32_t job, SampleId sample, uint32_t bytes) override;
  Background background() override;

 private:
  bool load_next();

  const std::span<const uint32_t> bytes_;
  const ChunkMap map_;
  ChunkPool pool_;
  Background background_;
};

}  // namespace sluice::policy
