// What a job's requests get where its samples come from chunks: by Brand, or from the pool. All is
// decided ahead of the reads, as if a chunk were in memory as soon as it is needed, so that what is
// delivered can be published, and chunks read, before the job comes to it. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "policy/chunks/brand.h"
#include "policy/chunks/chunk_map.h"
#include "policy/chunks/pool.h"

namespace sluice::policy {

enum class ChunkSystemKind : uint8_t { kBrand, kPool };
constexpr const char* name_of(ChunkSystemKind kind) {
  return kind == ChunkSystemKind::kBrand ? "brand" : "pool";
}

class ChunkSupply {
 public:
  // `bytes` of memory by sample; `capacity`: of those that wait to be delivered, in bytes.
  ChunkSupply(ChunkSystemKind kind, ChunkMap map, std::vector<uint32_t> bytes, uint64_t capacity,
              uint64_t seed);
  ChunkSupply(const ChunkSupply&) = delete;
  ChunkSupply& operator=(const ChunkSupply&) = delete;

  // Of samples that are in memory by what was decided, `gone` says which are not: they were evicted
  // all the same, or a reader had them from their own storage before their chunk was read. Their
  // chunks are read again. Null: all are.
  void begin_epoch(const std::function<bool(SampleId)>& gone = nullptr);

  struct Delivery {
    SampleId sample = kNoSample;
    bool in_memory = false;  // it came with a chunk that an earlier request needed
    bool held = false;       // it stays in memory for the next epoch
    // Not empty: a chunk is to be read for this sample, the first of these, and the others of these
    // are to be in memory from then on until they are delivered.
    std::vector<SampleId> loaded;
  };
  // Each sample is delivered once an epoch if each is requested once.
  Delivery request(SampleId requested);

  struct Counts {
    uint64_t deliveries = 0, substituted = 0;
    uint64_t loads = 0, loaded_samples = 0;  // of chunks; samples that these brought
    uint64_t alone = 0;                      // samples that are read by themselves
    uint64_t gone = 0;                       // samples that were not in memory when an epoch began
  };
  const Counts& counts() const { return counts_; }
  uint32_t samples() const { return map_.samples(); }
  uint32_t chunks() const { return map_.chunks(); }
  uint64_t footprint() const;  // bytes

 private:
  Delivery from_brand(Brand& brand, SampleId requested);
  Delivery from_pool(ChunkPool& pool, SampleId requested);
  bool load_next(ChunkPool* pool);

  const ChunkMap map_;
  const std::vector<uint32_t> bytes_;
  std::variant<Brand, ChunkPool> system_;
  // Of the pool, whose chunks are chosen before one of their samples is: by chunk, what it brought
  // that no delivery has needed yet.
  std::vector<std::vector<SampleId>> waiting_;
  Counts counts_;
};

}  // namespace sluice::policy
