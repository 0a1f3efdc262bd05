// All records of the main database of a data.mdb, read from its B-tree by the reader that
// sluice-lmdb has: read calls only, every number checked, no lock taken, nothing mapped.
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
  uint64_t index_bytes = 512ULL << 20;  // branch and leaf pages, which are all read
  uint64_t pages = 1ULL << 30;          // of the whole file; a bit each while it is read
};

struct LmdbListing {
  std::optional<RecordList> records;
  std::string why;  // without records: one line without the file's name, which it calls "it"
};

// Whether a file that begins with these bytes may be a data.mdb. 24 bytes are enough; fewer are
// none.
bool looks_like_lmdb(std::span<const std::byte> beginning);

// `path` is a file (/proc/self/fd/N is one). Blocks in the file system: one read call for each
// branch and leaf page. Any thread. Stops soon after `stop` is set, between two read calls. Throws
// nothing: a file that is damaged, was written to meanwhile, lies beyond the limits, or has
// MDB_DUPSORT or named databases gives no records and says why.
LmdbListing list_lmdb_records(const std::string& path, const std::atomic<bool>& stop,
                              const LmdbLimits& limits = {});

}  // namespace sluice::optimizer
