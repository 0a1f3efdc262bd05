#include "preload/samples/memory_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "preload/sys.h"

namespace sluice::preload {

MemoryFile::MemoryFile()
    : fd_(sys::call(SYS_memfd_create, sys::word("sluice-places"), MFD_CLOEXEC)) {}

MemoryFile::~MemoryFile() {
  if (!sys::failed(fd_)) sys::close(static_cast<int>(fd_));
}

bool MemoryFile::write(const void* data, size_t size) {
  if (sys::failed(fd_)) return false;
  for (size_t done = 0; done < size;) {
    const long wrote = sys::call(SYS_write, fd_, sys::word(static_cast<const char*>(data) + done),
                                 static_cast<long>(size - done));
    if (wrote == -EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  bytes_ += size;
  return true;
}

bool MemoryFile::add(const void* data, size_t size) {
  if (size > sizeof buffer_ - used_ && !flush()) return false;
  if (size > sizeof buffer_) return write(data, size);
  memcpy(buffer_ + used_, data, size);
  used_ += size;
  return true;
}

bool MemoryFile::flush() {
  const size_t size = used_;
  used_ = 0;
  return write(buffer_, size);
}

}  // namespace sluice::preload
