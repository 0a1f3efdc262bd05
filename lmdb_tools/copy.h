// Copies a source of records to a database: the loop of `make` and `reorder`.
#pragma once

#include <cstdint>
#include <string>

#include "lmdb_tools/source.h"
#include "lmdb_tools/writer.h"

namespace sluice::lmdb {

struct CopyLimits {
  uint64_t records = 0;  // 0: all records of the source, unless `bytes` is set
  uint64_t bytes = 0;    // if not 0: up to the first record with which the values reach this size
  uint64_t commit = 0;   // most records of a transaction
};

// Reads on all processors, writes in the order of the indices, continues after the records that the
// writer already has, and shows its progress as `what`. The caller must publish the result.
void copy_records(const RecordSource& source, const CopyLimits& limits, const std::string& what,
                  DatabaseWriter* writer);

}  // namespace sluice::lmdb
