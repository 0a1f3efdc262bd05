// A memfd that is written piece by piece and handed to the optimizer. Not thread-safe; not from a
// signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // False, here or in flush(): there is no memory for it.
  bool add(const void* data, size_t size);
  // What was added is in the file. REQUIRES: nothing is added afterwards.
  bool flush();

  uint64_t bytes() const { return bytes_ + used_; }
  int fd() const { return static_cast<int>(fd_); }

 private:
  bool write(const void* data, size_t size);

  const long fd_;
  uint64_t bytes_ = 0;
  size_t used_ = 0;
  char buffer_[16384];
};

}  // namespace sluice::preload
