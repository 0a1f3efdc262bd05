// Every chunk once an epoch at most: chunks are read in random order into a pool of samples, and a
// request gets its own sample if that is in the pool, otherwise a random one. Ours: Brand reads a
// chunk several times an epoch, since only the empty slots of one group can take its samples. Pure:
// the caller reads the chunks that are named here. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/chunks/chunk_map.h"
#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::policy {

class ChunkPool {
 public:
  // `bytes` by sample; it and `map` outlive this. `capacity` in bytes.
  ChunkPool(const ChunkMap& map, std::span<const uint32_t> bytes, uint64_t capacity, uint64_t seed);

  // Chunks of which all samples are in memory are not read again. REQUIRES: no chunk is in flight.
  void begin_epoch();
  // The sample is not in memory, whatever was decided. To be called before begin_epoch() only.
  void lost(SampleId sample);
  bool in_memory(SampleId sample) const { return in_memory_[sample]; }

  // The chunk to read next, for which there is room and which counts as in flight until loaded() or
  // failed(). kNoChunk: there is no room before more is requested, or nothing left to read. A chunk
  // larger than the capacity is read when the pool is empty.
  uint32_t next_load();
  // Appends the samples that it brings to `entered`, if that is not null.
  void loaded(uint32_t chunk, std::vector<SampleId>* entered = nullptr);
  // It could not be read: each of its samples will be delivered alone.
  void failed(uint32_t chunk);

  struct Answer {
    SampleId sample = kNoSample;  // to be delivered; kNoSample: a chunk must be loaded before
    bool alone = false;           // it is not in memory, and is to be read by itself
    bool held = false;            // it stays in memory for the next epoch
  };
  // Each sample is delivered once an epoch if each is requested once. One that is requested again
  // when all others were delivered is delivered again, alone.
  Answer request(SampleId requested);

  uint64_t used() const { return used_; }  // bytes, with those of chunks in flight
  // Bytes that loading `chunk` now would add: those of its samples that are neither in memory nor
  // delivered.
  uint64_t useful_bytes(uint32_t chunk) const;
  // Of this object and `map`, bytes.
  uint64_t footprint() const;

 private:
  struct Flight {
    uint32_t chunk;
    uint64_t bytes;  // that it adds to used_
  };
  void enter(SampleId sample);
  void deliver(SampleId sample);
  void land(uint32_t chunk);
  uint64_t chunk_bytes(uint32_t chunk) const;
  void designate(std::vector<uint32_t> residents);

  const ChunkMap& map_;
  const std::span<const uint32_t> bytes_;
  const uint64_t capacity_;
  Random random_;
  std::vector<uint32_t> order_;  // chunks that this epoch reads
  size_t next_ = 0;              // in order_
  std::vector<Flight> flights_;
  std::vector<bool> held_;       // by chunk: its samples stay in memory when they are delivered
  std::vector<bool> in_memory_;  // by sample
  std::vector<bool> delivered_;  // by sample, in this epoch
  std::vector<SampleId> pool_;   // to be delivered: those in memory, and those of failed chunks
  std::vector<uint32_t> place_;  // by sample: in pool_; kNowhere: not there
  uint64_t used_ = 0;
};

}  // namespace sluice::policy
