// A memfd that is written piece by piece and passed to the optimizer. Not thread-safe; not from a
// signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/base/own_descriptor.h"
#include "protocol/control.h"

namespace sluice::preload {

class MemoryFile {
 public:
  MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // False, here or in flush(): out of memory.
  bool add(const void* data, size_t size);
  // Reads `size` bytes from offset `from`, as the optimizer wrote them. False: there are fewer.
  bool read(void* out, uint64_t size, uint64_t from = 0) const;
  // Writes what was added to the file. REQUIRES: nothing is added afterwards.
  bool flush();

  uint64_t bytes() const { return bytes_ + used_; }
  int fd() const { return fd_.number(); }

 private:
  bool write(const void* data, size_t size);

  const OwnDescriptor fd_;
  uint64_t bytes_ = 0;
  size_t used_ = 0;
  char buffer_[16384];
};

// Asks with `memory` as the descriptor. `about` describes its contents; fills in the session and
// the number of bytes, and reduces ids to the optimizer's. 0 or a negative errno.
int send_samples(protocol::MessageKind kind, protocol::Samples about, MemoryFile& memory);

}  // namespace sluice::preload
