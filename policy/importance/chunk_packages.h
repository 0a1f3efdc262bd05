// Packages of L-samples that were made ahead: chunks, whose samples were drawn at random (`sluice
// chunks make`). This is the loading of iCache (section III-C) without its packing, which would
// leave H-samples out: members of a package depend on nothing that a job needs. Decisions are made
// ahead of the reads: a package is read for the first of its samples that is delivered. Pure; one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "policy/chunks/chunk_map.h"
#include "policy/importance/l_cache.h"
#include "policy/util/random.h"

namespace sluice::policy {

class ChunkPackages {
 public:
  // `bytes` of memory by sample, of all samples of `map`.
  ChunkPackages(std::shared_ptr<const ChunkMap> map, std::vector<uint32_t> bytes, uint64_t seed);

  // A job begins an epoch: each package may be loaded once more.
  void begin_epoch();
  // Of some packages that may be loaded, the one with most bytes of samples that are `useful`.
  // kNoChunk: reading any of these costs more than it brings. It is not named again in this epoch.
  uint32_t next_to_load(const std::function<bool(SampleId)>& useful);
  std::span<const SampleId> members(uint32_t package) const { return map_->members(package); }
  uint32_t bytes(SampleId sample) const { return bytes_[sample]; }
  uint64_t package_bytes() const;  // the mean

  // These samples of the package are in memory from the first delivery of one of them on.
  void loaded(uint32_t package, std::span<const Packed> samples);
  // The sample is delivered from memory. The package that must be read for it: its samples that
  // wait, the delivered one first; empty: it has been in memory before.
  std::vector<SampleId> read_for(SampleId delivered);
  // The sample is evicted, or delivered from its own storage.
  void drop(SampleId sample);
  // It waits for the first delivery of one of its package's samples.
  bool waits(SampleId sample) const;
  // The sample for which its package is read, until that is delivered again; kNoSample: none.
  SampleId read_with(SampleId sample) const { return first_[map_->chunk_of(sample)]; }

 private:
  const std::shared_ptr<const ChunkMap> map_;
  const std::vector<uint32_t> bytes_;
  Random random_;
  std::vector<uint32_t> left_;                  // packages that may be loaded, in no order
  std::vector<std::vector<SampleId>> waiting_;  // by package
  std::vector<SampleId> first_;                 // by package
};

}  // namespace sluice::policy
