// A data.mdb as a file: its meta pages, and bytes at offsets.
//
// liblmdb maps its file and trusts every number in it, so a damaged or truncated file ends the
// process with SIGSEGV or SIGBUS. All commands that read therefore use this reader, which uses read
// calls, checks each number before use, takes no lock and leaves no lock file behind.
#pragma once

#include <string>

#include "lmdb/file.h"
#include "lmdb/lmdb_format.h"

namespace sluice::lmdb {

class Database {
 public:
  // `path` is the folder that contains data.mdb, or the file itself. Fails unless both meta pages
  // are valid and the current roots lie within the file. REQUIRES: no writer is active; see
  // check_unchanged.
  explicit Database(const std::string& path);

  const std::string& path() const { return file_.path(); }  // of data.mdb
  const Meta& meta() const { return meta_; }
  uint64_t file_size() const { return file_.size(); }                // bytes
  uint64_t page_size() const { return page_size_; }                  // bytes
  uint64_t file_pages() const { return file_.size() / page_size_; }  // whole ones

  // Fills `out`; fails, naming the file, if the range lies beyond its end. Thread-safe.
  void read(uint64_t offset, std::span<uint8_t> out) const;

  // Fails if a transaction was committed since the constructor: the data read is then inconsistent.
  void check_unchanged() const;

 private:
  Meta read_meta(uint64_t offset) const;
  Meta newest_meta() const;

  File file_;
  uint64_t page_size_ = 0;
  Meta meta_{};
};

}  // namespace sluice::lmdb
