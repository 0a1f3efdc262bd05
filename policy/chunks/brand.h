// Brand on one host (sections 3.2 and 3.3): samples are read chunk by chunk into an abstract
// memory, and a request gets whichever sample lies at the place that the requested one is mapped
// to. Pure: the caller reads the chunks that are named here. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/chunks/chunk_map.h"
#include "policy/replacement/policy.h"
#include "policy/util/random.h"

namespace sluice::policy {

class Brand {
 public:
  struct Answer {
    SampleId sample = kNoSample;  // to be delivered
    uint32_t chunk = kNoChunk;    // to be read before, for this and later requests
    uint64_t useful = 0;          // bytes of that chunk that are retained or delivered now
    bool alone = false;           // the sample was in no chunk: it is to be read by itself
  };

  // `bytes` by sample; it and `map` outlive this. `capacity` in bytes. Where all samples fit they
  // stay in memory for good, and each request gets its own sample.
  Brand(const ChunkMap& map, std::span<const uint32_t> bytes, uint64_t capacity, uint64_t seed);

  // Samples in memory, loaded for an epoch that ended early, belong to the one that begins.
  void begin_epoch();
  // The sample is not in memory, whatever was decided. To be called before begin_epoch() only.
  void lost(SampleId sample);
  bool in_memory(SampleId sample) const { return slots_[place_of(sample)] == sample; }
  // Each sample is delivered once an epoch if each is requested once. One that is requested again
  // while no other is left in its place is delivered again, alone.
  // Appends the samples that a chunk brings to `loaded`, if that is not null.
  Answer request(SampleId requested, std::vector<SampleId>* loaded = nullptr);
  // The sample was delivered otherwise in this epoch, and was not in memory.
  void delivered(SampleId sample) { filled_[sample] = true; }

  // FillRate (section 3.3) is this over the samples of a chunk: how many of its samples would be
  // retained or delivered if it were read now.
  uint32_t fillable(uint32_t chunk) const;
  uint32_t groups() const { return groups_; }  // abstract chunks
  // Samples stay in memory when they were delivered: all fit.
  bool holds_all() const { return groups_ == map_.chunks(); }
  uint64_t used() const { return used_; }  // bytes
  // Of this object and `map`, bytes.
  uint64_t footprint() const;

 private:
  uint32_t group_of(uint32_t chunk) const {
    return static_cast<uint32_t>(static_cast<uint64_t>(chunk) * groups_ / map_.chunks());
  }
  uint32_t first_chunk(uint32_t group) const;
  size_t place_of(SampleId sample) const {  // in slots_
    return static_cast<size_t>(group_of(map_.chunk_of(sample))) * map_.chunk_samples() +
           map_.slot_of(sample);
  }
  std::span<SampleId> slots_of(uint32_t group);
  uint32_t choose(uint32_t group, uint32_t slot);
  void fill(uint32_t chunk, uint32_t slot, Answer* answer, std::vector<SampleId>* loaded);

  const ChunkMap& map_;
  const std::span<const uint32_t> bytes_;
  const uint64_t capacity_;
  const uint32_t groups_;
  Random random_;
  std::vector<SampleId> slots_;  // the abstract memory, by group and slot; kNoSample: invalid
  std::vector<bool> filled_;     // by sample: loaded in this epoch, or delivered
  uint64_t used_ = 0;
};

}  // namespace sluice::policy
