#include "preload/files/fds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "preload/base/keep_errno.h"
#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/data/datasets.h"
#include "preload/data/left_alone.h"
#include "preload/samples/samples.h"
#include "preload/session/client.h"
#include "preload/session/events.h"

namespace sluice::preload {
namespace {

constexpr uint64_t kDecideAfter = 64 << 10;  // bytes read before the optimizer is asked
// The kernel takes no more of a call of readahead() than the mount's own read-ahead, 128 KiB unless
// it was set.
constexpr off_t kRequest = 128 << 10;
// Of a large read. More would be in the way of other reads: the optimizer, to which larger ones are
// reported when they begin, has no more in flight than the storage takes.
constexpr size_t kMostRequested = 16 << 20;
constexpr uint64_t kAskAgainAfter = 4 << 20;  // bytes read, where no optimizer answered
constexpr uint64_t kEventBytes = 256 << 10;   // bytes read between two events

constinit FdEntry g_fds[kMaxFds];

// `seen` is below zero, that is, very large, after a question without an answer.
bool is_too_early(uint64_t seen) {
  return static_cast<int64_t>(seen) < static_cast<int64_t>(kDecideAfter);
}

bool same_file(int fd, const FdEntry& entry, struct stat* about) {
  return sys::call(SYS_fstat, fd, sys::word(about)) == 0 &&
         about->st_dev == entry.device.load(std::memory_order_relaxed) &&
         about->st_ino == entry.inode.load(std::memory_order_relaxed);
}

// After the first bytes were read: decides whether this is data. Sets kFollowed, kLeftAlone or
// kOther; where there was no answer it stays kPossible.
bool decide(int fd, FdEntry& entry) {
  struct stat about;
  DataFile data;
  FollowedFile followed;
  if (same_file(fd, entry, &about) && recognise(fd, about, false, &data)) {
    if (follow_file(fd, about, data.path, false, protocol::CheckpointMode::kStream, &followed,
                    entry.asked.load(std::memory_order_relaxed))) {
      entry.file.store(followed.file, std::memory_order_relaxed);
      entry.use.store(FdUse::kFollowed, std::memory_order_release);
      return true;
    }
    if (may_be_followed_later()) {  // an optimizer that others are starting, or that is busy
      entry.asked.store(true, std::memory_order_relaxed);
      entry.seen.store(kDecideAfter - kAskAgainAfter, std::memory_order_relaxed);
      return false;
    }
  }
  entry.use.store(
      entry.file.load(std::memory_order_relaxed) != 0 ? FdUse::kLeftAlone : FdUse::kOther,
      std::memory_order_relaxed);
  left_alone_read(entry.file.load(std::memory_order_relaxed),
                  entry.seen.load(std::memory_order_relaxed));
  return false;
}

// True if the optimizer that followed this file is gone: the next reads ask again.
bool end_of_session(FdEntry& entry) {
  const uint32_t file = entry.file.load(std::memory_order_relaxed);
  if (session_of_file_lives(file)) return false;
  entry.file.store(0, std::memory_order_relaxed);
  entry.use.store(FdUse::kPossible, std::memory_order_relaxed);
  return true;
}

// Reports a read of the `bytes` before `end`.
void report_read(int fd, FdEntry& entry, uint64_t end, uint64_t bytes) {
  struct stat about;
  if (!same_file(fd, entry, &about)) {
    entry.use.store(FdUse::kOther, std::memory_order_relaxed);
    return;
  }
  if (end_of_session(entry)) return;
  emit_read(entry.file.load(std::memory_order_relaxed), end > bytes ? end - bytes : 0, bytes,
            sample_flags());
}

void part(const FdEntry& entry, uint64_t offset, ssize_t bytes) {
  sample_part(entry.file.load(std::memory_order_relaxed), offset, static_cast<uint64_t>(bytes));
}

bool was_left_alone(const FdEntry& entry, ssize_t bytes) {
  if (entry.use.load(std::memory_order_relaxed) != FdUse::kLeftAlone) return false;
  left_alone_read(entry.file.load(std::memory_order_relaxed), static_cast<uint64_t>(bytes));
  return true;
}

// True if enough was read for an event, which the caller then sends.
bool due(int fd, FdEntry& entry, uint64_t bytes, bool first) {
  const uint64_t pending = entry.pending.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (entry.use.load(std::memory_order_acquire) == FdUse::kPossible) {
    // Counts all bytes, not only runs: records that are read at random are small.
    const uint64_t seen = entry.seen.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (is_too_early(seen) || in_seen_vfork_child()) return false;
    if (process_is_new()) process_after_fork();
    return decide(fd, entry);
  }
  count(protocol::ClientMetric::streamed_bytes, bytes);
  return first || pending >= kEventBytes;
}

// Asks the kernel what the file is. Changes `use` from kUnknown.
void look_at(int fd, FdEntry& entry) {
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0) {
    entry.use.store(FdUse::kOther, std::memory_order_relaxed);
    return;
  }
  const uint32_t kind = left_alone_opened(fd, about);
  entry.file.store(kind, std::memory_order_relaxed);
  if (!may_be_streamed(fd, about)) {
    entry.use.store(kind != 0 ? FdUse::kLeftAlone : FdUse::kOther, std::memory_order_release);
    return;
  }
  entry.device.store(about.st_dev, std::memory_order_relaxed);
  entry.inode.store(about.st_ino, std::memory_order_relaxed);
  FollowedFile followed;
  if (process_is_new()) process_after_fork();
  if (follows(about, &followed)) {  // already followed: workers open a file again
    entry.file.store(followed.file, std::memory_order_relaxed);
    entry.use.store(FdUse::kFollowed, std::memory_order_release);
    return;
  }
  entry.use.store(FdUse::kPossible, std::memory_order_release);
}

// After a read of a kUnknown descriptor, which ended at `end` (0: at its own offset). True: its use
// is known now, and the caller counts the read.
bool look_after_read(int fd, FdEntry& entry, uint64_t bytes, size_t wanted, uint64_t end) {
  if (in_seen_vfork_child()) return false;
  const uint64_t seen = entry.seen.load(std::memory_order_relaxed) + bytes;
  if (seen < kDecideAfter) {
    // A short read ends at the end of the file: of a small one, or no regular one, unless it began
    // after a seek, as reading a zip archive does.
    const bool small =
        end != 0 ? end < kDecideAfter : !entry.jumped.load(std::memory_order_relaxed);
    if (bytes < wanted && small) entry.use.store(FdUse::kOther, std::memory_order_relaxed);
    entry.seen.store(seen, std::memory_order_relaxed);
    return false;
  }
  const uint64_t before = seen - bytes;
  look_at(fd, entry);
  if (entry.use.load(std::memory_order_relaxed) == FdUse::kLeftAlone && before != 0) {
    left_alone_read(entry.file.load(std::memory_order_relaxed), before);
  }
  return entry.use.load(std::memory_order_relaxed) != FdUse::kOther;
}

bool is_unknown(const FdEntry& entry) {
  return entry.use.load(std::memory_order_relaxed) == FdUse::kUnknown;
}

}  // namespace

FdEntry* fd_table() { return g_fds; }

void fd_opened(int fd, int flags) {
  if (static_cast<unsigned>(fd) >= kMaxFds || g_settings.off) return;
  FdEntry& entry = g_fds[fd];
  const bool known = entry.use.load(std::memory_order_relaxed) != FdUse::kOther;
  const bool readable = (flags & (O_ACCMODE | O_PATH | O_DIRECTORY | O_DIRECT)) == O_RDONLY;
  if ((!known && !readable) || in_seen_vfork_child()) return;
  entry.file.store(0, std::memory_order_relaxed);
  entry.pending.store(0, std::memory_order_relaxed);
  entry.seen.store(0, std::memory_order_relaxed);
  entry.expected.store(0, std::memory_order_relaxed);
  entry.jumped.store(false, std::memory_order_relaxed);
  entry.asked.store(false, std::memory_order_relaxed);
  entry.cached.store(false, std::memory_order_relaxed);
  entry.use.store(readable ? FdUse::kUnknown : FdUse::kOther, std::memory_order_release);
  if (readable && follows_any()) {
    const KeepErrno keep;
    look_at(fd, entry);
  }
}

void fd_closed(int fd) {
  FdEntry* entry = data_fd(fd);
  if (entry == nullptr || in_seen_vfork_child()) return;
  entry->use.store(FdUse::kOther, std::memory_order_relaxed);
}

void fds_closed(unsigned first, unsigned last) {
  if (in_seen_vfork_child()) return;
  for (unsigned fd = first; fd <= last && fd < kMaxFds; ++fd) {
    if (g_fds[fd].use.load(std::memory_order_relaxed) != FdUse::kOther) {
      g_fds[fd].use.store(FdUse::kOther, std::memory_order_relaxed);
    }
  }
}

void fd_copied(int from, int to) {
  if (static_cast<unsigned>(to) >= kMaxFds) return;
  FdEntry* source = data_fd(from);
  FdEntry& target = g_fds[to];
  if (source == nullptr && target.use.load(std::memory_order_relaxed) == FdUse::kOther) return;
  if (in_seen_vfork_child()) return;
  if (source == nullptr) {
    target.use.store(FdUse::kOther, std::memory_order_relaxed);
    return;
  }
  target.file.store(source->file.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.device.store(source->device.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.inode.store(source->inode.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.pending.store(0, std::memory_order_relaxed);
  target.seen.store(0, std::memory_order_relaxed);
  target.expected.store(0, std::memory_order_relaxed);
  target.jumped.store(false, std::memory_order_relaxed);
  target.asked.store(source->asked.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.cached.store(source->cached.load(std::memory_order_relaxed), std::memory_order_relaxed);
  target.use.store(source->use.load(std::memory_order_relaxed), std::memory_order_release);
}

void fd_large_read(int fd, off_t offset, size_t size) {
  FdEntry* entry = data_fd(fd);
  const bool cached = entry != nullptr && entry->cached.load(std::memory_order_relaxed);
  if (entry == nullptr || (cached && size <= kMostRequested)) return;
  if (in_seen_vfork_child()) return;
  const KeepErrno keep;
  if (is_unknown(*entry)) look_at(fd, *entry);
  const auto seen = static_cast<int64_t>(entry->seen.load(std::memory_order_relaxed));
  if (entry->use.load(std::memory_order_acquire) == FdUse::kPossible && seen >= 0) {
    if (process_is_new()) process_after_fork();
    decide(fd, *entry);
  }
  if (entry->use.load(std::memory_order_acquire) != FdUse::kFollowed) return;
  if (offset < 0) offset = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (offset < 0) return;
  struct stat about;
  if (size > kMostRequested && same_file(fd, *entry, &about) && offset < about.st_size) {
    const size_t left = static_cast<size_t>(about.st_size - offset);
    emit_read(entry->file.load(std::memory_order_relaxed), static_cast<uint64_t>(offset),
              std::min(size, left), sample_flags() | protocol::kFlagBegun);
  }
  if (cached) return;
  const off_t end = offset + static_cast<off_t>(std::min(size, kMostRequested));
  for (off_t at = offset; at < end; at += kRequest) {
    sys::call(SYS_readahead, fd, at, std::min(kRequest, end - at));
  }
}

void fd_large_read_ended(int fd, bool waited) {
  FdEntry* entry = data_fd(fd);
  if (entry == nullptr || entry->cached.load(std::memory_order_relaxed) != waited) return;
  entry->cached.store(!waited, std::memory_order_relaxed);
}

void fd_read(int fd, ssize_t bytes, size_t wanted) {
  FdEntry* entry = data_fd(fd);
  if (entry == nullptr || bytes <= 0) return;
  const KeepErrno keep;
  const auto length = static_cast<uint64_t>(bytes);
  if (is_unknown(*entry) && !look_after_read(fd, *entry, length, wanted, 0)) return;
  if (was_left_alone(*entry, bytes)) return;
  if (current_sample() != 0 && entry->use.load(std::memory_order_acquire) == FdUse::kFollowed) {
    const long end = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
    if (end >= bytes) part(*entry, static_cast<uint64_t>(end - bytes), bytes);
  }
  const bool jumped = entry->jumped.load(std::memory_order_relaxed) &&
                      entry->jumped.exchange(false, std::memory_order_relaxed);
  if (!due(fd, *entry, length, jumped)) return;
  // The offset is read from the kernel once an event, not tracked through every call.
  const long end = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (sys::failed(end)) return;
  report_read(fd, *entry, static_cast<uint64_t>(end),
              entry->pending.exchange(0, std::memory_order_relaxed));
}

void fd_read_at(int fd, ssize_t bytes, off_t offset, size_t wanted) {
  FdEntry* entry = data_fd(fd);
  if (entry == nullptr || bytes <= 0 || offset < 0) return;
  const KeepErrno keep;
  const auto begin = static_cast<uint64_t>(offset);
  const auto length = static_cast<uint64_t>(bytes);
  if (is_unknown(*entry) && !look_after_read(fd, *entry, length, wanted, begin + length)) return;
  if (was_left_alone(*entry, bytes)) return;
  const uint64_t expected = entry->expected.exchange(begin + length, std::memory_order_relaxed);
  const bool jumped = expected != begin;
  if (entry->use.load(std::memory_order_acquire) == FdUse::kFollowed) part(*entry, begin, bytes);
  if (jumped) entry->pending.store(0, std::memory_order_relaxed);
  if (!due(fd, *entry, length, jumped)) return;
  report_read(fd, *entry, begin + length, entry->pending.exchange(0, std::memory_order_relaxed));
}

off_t fd_offset(int fd) {
  const FdEntry* entry = data_fd(fd);
  if (entry == nullptr) return -1;
  const FdUse use = entry->use.load(std::memory_order_relaxed);
  if (use != FdUse::kFollowed && use != FdUse::kPossible) return -1;
  const long offset = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  return sys::failed(offset) ? -1 : offset;
}

void fd_sought(int fd, off_t before, off_t now) {
  FdEntry* entry = data_fd(fd);
  if (entry == nullptr) return;
  if (before < 0 ? !is_unknown(*entry) : now == before) return;
  entry->pending.store(0, std::memory_order_relaxed);
  entry->jumped.store(true, std::memory_order_relaxed);
}

}  // namespace sluice::preload
