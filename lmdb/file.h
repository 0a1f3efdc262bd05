// A file opened for reading at offsets. Every error is a Failure that names the path.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::lmdb {

// Owns its descriptor. Reading is thread-safe.
class File {
 public:
  // Opens a regular file.
  explicit File(std::string path);
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // bytes, when the file was opened

  // Fills `out` from `offset`; fails if the file ends first.
  void read(uint64_t offset, std::span<uint8_t> out) const;

 private:
  const std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

// The whole content of a file.
std::vector<uint8_t> read_file(const std::string& path);

}  // namespace sluice::lmdb
