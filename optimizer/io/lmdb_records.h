// Lists all records of the main database of a data.mdb from its B-tree, with the reader of
// sluice-lmdb: read calls only, every number checked, no lock taken, nothing mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "policy/samples/record_list.h"

namespace sluice::optimizer {

// Files beyond these are not listed.
struct LmdbLimits {
  uint64_t records = 8'000'000;
  uint64_t key_bytes = 256ULL << 20;    // all keys together
  uint64_t index_bytes = 512ULL << 20;  // branch and leaf pages, all of which are read
  uint64_t pages = 1ULL << 30;          // of the whole file; a bit of memory each while reading
};

struct LmdbListing {
  std::optional<policy::RecordList> records;
  std::string why;  // if no records: one line that calls the file "it"
};

// Whether a file that begins with these bytes may be a data.mdb. Needs 24 bytes; false for fewer.
bool looks_like_lmdb(std::span<const std::byte> beginning);

// `path` names a file (also as /proc/self/fd/N). Blocks in the file system: one read call for each
// branch and leaf page. Any thread. Once `stop` is set it ends between two read calls. Throws
// nothing: for a file that is damaged, modified meanwhile, beyond the limits, or has MDB_DUPSORT or
// named databases, it returns no records and the reason.
LmdbListing list_lmdb_records(const std::string& path, const std::atomic<bool>& stop,
                              const LmdbLimits& limits = {});

}  // namespace sluice::optimizer
