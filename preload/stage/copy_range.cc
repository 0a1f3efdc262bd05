#include "preload/stage/copy_range.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "preload/base/sys.h"
#include "preload/stage/opened.h"

namespace sluice::preload {
namespace {

struct Copied {
  long bytes = 0;
  long error = 0;  // negative errno of the call that failed
};

// Both offsets are absolute. Ends at the staged copy's end, or at the first failed write.
Copied copy(int from, off64_t from_offset, int to, off64_t to_offset, size_t size) {
  char piece[2048];
  Copied copied;
  while (static_cast<size_t>(copied.bytes) < size) {
    const size_t wanted = std::min(sizeof(piece), size - static_cast<size_t>(copied.bytes));
    const long got = sys::call(SYS_pread64, from, sys::word(piece), static_cast<long>(wanted),
                               from_offset + copied.bytes);
    if (got <= 0) return {copied.bytes, got};
    const long put = sys::call(SYS_pwrite64, to, sys::word(piece), got, to_offset + copied.bytes);
    if (put <= 0) return {copied.bytes, put};
    copied.bytes += put;
  }
  return copied;
}

// The given offset, or else the descriptor's own; negative: it has none.
off64_t offset_of(int fd, const off64_t* given) {
  return given != nullptr ? *given : sys::call(SYS_lseek, fd, 0, SEEK_CUR);
}
void advance(int fd, off64_t* given, off64_t to) {
  if (given != nullptr) {
    *given = to;
  } else {
    sys::call(SYS_lseek, fd, to, SEEK_SET);
  }
}

}  // namespace

ssize_t copy_range_of_staged(int from, off64_t* from_offset, int to, off64_t* to_offset,
                             size_t size) {
  errno = EXDEV;
  const StagedUse use(from);
  const StagedFd* entry = staged_fd(from);
  struct stat target;
  if (entry == nullptr || sys::call(SYS_fstat, to, sys::word(&target)) != 0 ||
      target.st_dev != entry->stat.device) {
    return -1;
  }
  const off64_t source = offset_of(from, from_offset), destination = offset_of(to, to_offset);
  if (source < 0 || destination < 0) return -1;
  const Copied copied = copy(from, source, to, destination, size);
  if (copied.bytes == 0 && copied.error < 0) {
    errno = static_cast<int>(-copied.error);
    return -1;
  }
  advance(from, from_offset, source + copied.bytes);
  advance(to, to_offset, destination + copied.bytes);
  return copied.bytes;
}

}  // namespace sluice::preload
