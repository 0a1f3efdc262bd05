// Finds the chunks of datasets in an HDF5 file whose rows are samples, from the file's own index.
// Format: "HDF5 File Format Specification Version 3.0" (The HDF Group); superblocks 0 to 3, object
// headers 1 and 2, groups of symbol tables or of links in their header, chunks indexed by a B-tree
// of version 1, as HDF5 writes them unless its newest format is requested. Others are not found.
//
// Files are hostile: everything read is checked, cycles end, and memory and reads are bounded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "policy/samples/chunk_guess.h"

namespace sluice::optimizer {

struct Hdf5Limits {
  uint64_t nodes = 1 << 18;  // of indices and headers, all of which are read: 4 KiB or less each
  uint64_t objects = 4096;   // groups and datasets
  uint64_t datasets = 16;    // of these, found: each takes 16 bytes for each of its chunks
};

// Reads `size` bytes at `offset`; false: there are fewer, or it is time to stop.
using Hdf5Read = std::function<bool(uint64_t offset, void* out, uint64_t size)>;
// Some of the next reads: [offset, offset + size).
using Hdf5Ahead = std::function<void(uint64_t offset, uint64_t size)>;

// Whether a file that begins with these 8 bytes may be one.
bool looks_like_hdf5(const void* beginning);

// The datasets with `rows` rows whose chunks each hold whole rows, in no order; damaged and unknown
// parts are left out. `size`: of the file, bytes.
std::vector<policy::RowChunks> find_hdf5_chunks(const Hdf5Read& read, const Hdf5Ahead& ahead,
                                                uint64_t size, uint64_t rows,
                                                const Hdf5Limits& limits = {});

}  // namespace sluice::optimizer
