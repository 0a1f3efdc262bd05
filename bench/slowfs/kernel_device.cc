#include "bench/slowfs/kernel_device.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "bench/slowfs/filesystem.h"
#include "bench/slowfs/kernel_device.h"

namespace sluice::slowfs {
namespace {

std::atomic<bool> answered{false};

}  // namespace

ssize_t write_device(int fd, iovec* parts, int count, void* userdata) {
  if (answered.load(std::memory_order_relaxed) || answered.exchange(true)) {
    return writev(fd, parts, count);
  }
  // The first answer ever written is the one to FUSE_INIT: a header and a fuse_init_out.
  if (count == 2 && parts[1].iov_len >= offsetof(fuse_init_out, flags) + sizeof(uint32_t) &&
      static_cast<const fuse_out_header*>(parts[0].iov_base)->error == 0) {
    static_cast<fuse_init_out*>(parts[1].iov_base)->flags |= FUSE_PARALLEL_DIROPS;
  }
  const ssize_t written = writev(fd, parts, count);
  // The kernel has taken the answer in by now.
  const Filesystem& filesystem = *static_cast<const Filesystem*>(userdata);
  if (written > 0 && filesystem.on_mounted) filesystem.on_mounted();
  return written;
}

ssize_t read_device(int fd, void* buffer, size_t size, void*) { return read(fd, buffer, size); }

ssize_t splice_to_device(int from, off_t* from_offset, int to, off_t* to_offset, size_t size,
                         unsigned flags, void*) {
  return splice(from, from_offset, to, to_offset, size, flags);
}

}  // namespace sluice::slowfs
