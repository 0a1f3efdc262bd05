// Copies a file into the stage with the bytes that a chunk has of it. Any thread; blocks in the
// file system.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "optimizer/chunks/chunk_read.h"
#include "optimizer/chunks/chunk_store.h"
#include "optimizer/stage/stage_copy.h"

namespace sluice::optimizer {

struct ChunkedCopy {
  std::shared_ptr<ChunkStore> store;
  std::shared_ptr<ChunkRead> read;  // of the whole chunk, shared by its members
  ChunkStore::Place place;
  uint64_t stale_ns = 0;  // for so long a change on another host may go unnoticed
};

// As copy_in(). Not good: the chunk does not have the file's bytes, or the original is not what was
// packed, or cannot be copied anyway. REQUIRES: rules.chunk.
CopyResult copy_from_chunk(const std::string& path, int folder, uint64_t name,
                           const CopyRules& rules);

// Where changes may go unnoticed for that long, attributes that the kernel has cached are new
// enough: of a file it is one request less, and those of a folder come with its listing.
inline constexpr uint64_t kCachedAttributesNs = 60'000'000'000;

// Compares all originals in the folder with what was packed: a listing brings the attributes of
// many with one request, where the mount can. Copies may be made of files of any mount, or not of
// those on a local one.
void check_folder(const std::string& folder, bool any_mount, ChunkStore* store);

}  // namespace sluice::optimizer
