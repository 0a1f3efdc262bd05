// Writes a database with liblmdb, batch by batch, so that it can be interrupted anywhere and gone
// on with later: the file is then the very same, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lmdb_tools/partial.h"
#include "lmdb_tools/source.h"

namespace sluice::lmdb {

class DatabaseWriter {
 public:
  // Goes on after what an interrupted run of the same `job` had committed, see Partial. Fails if
  // that is damaged.
  DatabaseWriter(const std::string& out, const std::string& job);
  DatabaseWriter(const DatabaseWriter&) = delete;
  DatabaseWriter& operator=(const DatabaseWriter&) = delete;
  ~DatabaseWriter();  // unpublished: what was committed stays for another run

  uint64_t records() const { return records_; }  // committed
  uint64_t bytes() const { return bytes_; }      // of their values

  // Appends one transaction. REQUIRES: keys ascend, and follow those of earlier batches; batches
  // are cut in the same places whenever the job is run.
  void commit(std::span<const KeyValue> batch);

  // Puts everything on disk and renames the database to its name.
  void publish();

 private:
  void take_stock();

  Partial partial_;
  const std::string data_;  // path of data.mdb
  uint64_t records_ = 0;
  uint64_t bytes_ = 0;
  uint64_t used_ = 0;      // bytes of the file in use
  uint64_t map_size_ = 0;  // bytes, as the meta page has it
  bool published_ = false;
};

}  // namespace sluice::lmdb
