// A memfd that is written piece by piece and handed to the optimizer. Not thread-safe; not from a
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

  // False, here or in flush(): there is no memory for it.
  bool add(const void* data, size_t size);
  // `size` bytes from byte `from` on, as the other side left them. False: not so many.
  bool read(void* out, uint64_t size, uint64_t from = 0) const;
  // What was added is in the file. REQUIRES: nothing is added afterwards.
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

// Asks with `memory` as the descriptor. `about` says what it is of; its session, its bytes and the
// form of its ids are filled in here. 0 or a negative errno.
int tell_samples(protocol::MessageKind kind, protocol::Samples about, MemoryFile& memory);

}  // namespace sluice::preload
