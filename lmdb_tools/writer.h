// Writes a database with liblmdb, batch by batch, so that it can be interrupted anywhere and
// continued later: the resulting file is the same, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lmdb_tools/partial.h"
#include "lmdb_tools/source.h"

namespace sluice::lmdb {

class DatabaseWriter {
 public:
  // Continues after what an interrupted run of the same `job` has committed, see Partial. Fails if
  // that is damaged.
  DatabaseWriter(const std::string& out, const std::string& job);
  DatabaseWriter(const DatabaseWriter&) = delete;
  DatabaseWriter& operator=(const DatabaseWriter&) = delete;
  ~DatabaseWriter();  // if unpublished, what was committed stays for another run

  uint64_t records() const { return records_; }  // committed ones
  uint64_t bytes() const { return bytes_; }      // of their values

  // Appends one transaction. REQUIRES: keys ascend, and follow those of earlier batches; each run
  // of the job divides its records into the same batches.
  void commit(std::span<const KeyValue> batch);

  // Writes everything to disk and renames the database to its final name.
  void publish();

 private:
  void take_stock();

  Partial partial_;
  const std::string data_;  // path of data.mdb
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;      // bytes of the file in use
  uint64_t map_size_ = 0;  // bytes, as in the meta page
  bool published_ = false;
};

}  // namespace sluice::lmdb
