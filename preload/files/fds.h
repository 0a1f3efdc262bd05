// Which of the job's descriptors read data. One table entry for each number; descriptors that read
// no data cost one load.
//
// An open costs no system call: the file is examined once 64 KiB were read from it, which most
// files do not have. But if the process already follows a file, a new descriptor may be of the same
// file, so it is examined when it is opened.
//
// A descriptor may be closed, and its number reused, by calls that no hook sees: before an event is
// sent, the file is compared with the recorded one. Any thread; racing threads at worst lose or
// repeat an event.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace sluice::preload {

inline constexpr int kMaxFds = 65536;

enum class FdUse : uint8_t {
  kOther = 0,     // never data, or opened by a call that no hook saw
  kPossible = 1,  // large enough; decided at the first reads
  kFollowed = 2,
  kLeftAlone = 3,  // not prefetched; `file` is its kind (left_alone.h)
  kUnknown = 4,    // opened for reading, and not examined yet
};

// Zero at first, as all of the table is: it is to take memory only where it is used.
struct FdEntry {
  std::atomic<FdUse> use{FdUse::kOther};
  std::atomic<bool> jumped{false};  // the offset was moved since the last read
  std::atomic<bool> asked{false};   // whether it is followed; there was no answer
  std::atomic<bool> cached{false};  // the last large read did not wait for storage
  std::atomic<uint32_t> file{0};
  std::atomic<uint64_t> device{0};
  std::atomic<uint64_t> inode{0};
  std::atomic<uint64_t> pending{0};   // bytes read since the last event, or the last seek
  std::atomic<uint64_t> seen{0};      // bytes read before it was decided whether this is data
  std::atomic<uint64_t> expected{0};  // pread: offset that continues the run; bytes
};

FdEntry* fd_table();  // kMaxFds entries

// nullptr for descriptors that read no data: the fast path.
inline FdEntry* data_fd(int fd) {
  if (static_cast<unsigned>(fd) >= kMaxFds) return nullptr;
  FdEntry* entry = &fd_table()[fd];
  return entry->use.load(std::memory_order_relaxed) == FdUse::kOther ? nullptr : entry;
}

// After a successful open. errno is preserved.
void fd_opened(int fd, int flags);
void fd_closed(int fd);
void fds_closed(unsigned first, unsigned last);
void fd_copied(int from, int to);

// Calls that read so many bytes are large: what they are about to read can be requested as a whole.
inline constexpr size_t kLargeRead = 256 << 10;
// Before a large read, at the descriptor's own offset if `offset` is negative. Where the file is
// followed and the last large read waited, requests the range from the kernel, which alone would
// request no more of it at a time than it reads ahead (128 KiB), one after the other; of a very
// large read the beginning, and the optimizer reads the rest. errno is preserved.
void fd_large_read(int fd, off_t offset, size_t size);
void fd_large_read_ended(int fd, bool waited);

// After `bytes` of `wanted` bytes were read, at the descriptor's own offset or at `offset`. Fewer
// than `wanted` mean the end of the file. errno is preserved.
void fd_read(int fd, ssize_t bytes, size_t wanted);
void fd_read_at(int fd, ssize_t bytes, off_t offset, size_t wanted);
// The descriptor's offset before a seek, for fd_sought(); -1 where its runs are not followed. errno
// is preserved.
off_t fd_offset(int fd);
// After a seek but one that only asks for the offset, as Python's tell() does. Where it moved the
// offset, or may have if `before` is -1, the next read begins a run and is reported at once, as one
// of pread() is. errno is preserved.
void fd_sought(int fd, off_t before, off_t now);

}  // namespace sluice::preload
