// Reads and writes of exactly `size` bytes despite signals and short transfers. Any thread.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace sluice::optimizer {

// Reads `size` bytes of `fd` from byte `at` on. 0, or an errno; ENODATA: the file ends before.
inline int read_fully(int fd, void* out, size_t size, uint64_t at) {
  for (size_t done = 0; done < size;) {
    const ssize_t got =
        pread(fd, static_cast<char*>(out) + done, size - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ENODATA;
    done += static_cast<size_t>(got);
  }
  return 0;
}

// Writes all of `bytes` at the descriptor's offset. 0, or an errno.
inline int write_fully(int fd, const void* bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t wrote = write(fd, static_cast<const char*>(bytes) + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote == 0 ? ENOSPC : errno;
    done += static_cast<size_t>(wrote);
  }
  return 0;
}

}  // namespace sluice::optimizer
