// From a source of records to a database: the loop of `make` and `reorder`.
#pragma once

#include <cstdint>
#include <string>

#include "lmdb_tools/source.h"
#include "lmdb_tools/writer.h"

namespace sluice::lmdb {

struct CopyLimits {
  uint64_t records = 0;  // 0: as many as the source has, unless `bytes` is set
  uint64_t bytes = 0;    // not 0: up to the first record with which the values are that many
  uint64_t commit = 0;   // records of a transaction at most
};

// Reads on all processors, in the order of the indices writes, goes on after what the writer has,
// and shows its progress as `what`. Leaves it to the caller to publish.
void copy_records(const RecordSource& source, const CopyLimits& limits, const std::string& what,
                  DatabaseWriter* writer);

}  // namespace sluice::lmdb
