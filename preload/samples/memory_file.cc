#include "preload/samples/memory_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "preload/base/sys.h"
#include "preload/session/client.h"

namespace sluice::preload {

MemoryFile::MemoryFile()
    : fd_(sys::call(SYS_memfd_create, sys::word("sluice-samples"), MFD_CLOEXEC)) {}

bool MemoryFile::write(const void* data, size_t size) {
  if (!fd_.ours()) return false;
  for (size_t done = 0; done < size;) {
    const long wrote =
        sys::call(SYS_write, fd_.number(), sys::word(static_cast<const char*>(data) + done),
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

bool MemoryFile::read(void* out, uint64_t size, uint64_t from) const {
  for (uint64_t done = 0; done < size;) {
    if (!fd_.ours()) return false;
    const long got = sys::call(SYS_pread64, fd_.number(), sys::word(static_cast<char*>(out) + done),
                               static_cast<long>(size - done), static_cast<long>(from + done));
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

bool MemoryFile::flush() {
  const size_t size = used_;
  used_ = 0;
  return write(buffer_, size);
}

int send_samples(protocol::MessageKind kind, protocol::Samples about, MemoryFile& memory) {
  if (!memory.flush()) return -ENOSPC;
  about.bytes = memory.bytes();
  about.dataset &= (1U << kFileIdBits) - 1;
  if (kind == protocol::MessageKind::kLocateExtents || kind == protocol::MessageKind::kLocateKeys) {
    about.file &= (1U << kFileIdBits) - 1;
  }
  const auto ask = kind == protocol::MessageKind::kSelect ? ask_at_length : ask_in_session;
  return ask({.kind = kind,
              .expected = protocol::MessageKind::kDone,
              .body = &about,
              .body_size = sizeof about,
              .fd = memory.fd()});
}

}  // namespace sluice::preload
