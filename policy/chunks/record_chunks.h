// Chunks of samples that are records of large files: those that lie together. A database, tar file
// or array that was written in a shuffled order is its own chunks (Brand, section 3.2). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/chunks/chunk_map.h"
#include "policy/samples/sample_set.h"

namespace sluice::policy {

struct RecordChunks {
  ChunkMap map;
  std::vector<uint32_t> bytes;  // of memory, by sample
};

// In the order of the files, and of the places within each; a chunk has samples of one file.
// nullopt: some sample is not known, or is no record. Sorts all samples.
std::optional<RecordChunks> record_chunks(const SampleSet& set, uint32_t chunk_samples);

}  // namespace sluice::policy
