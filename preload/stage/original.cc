#include "preload/stage/original.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "preload/base/backoff.h"
#include "preload/base/lock.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/stage/copy_counts.h"
#include "preload/stage/lookup.h"
#include "preload/stage/probe.h"

namespace sluice::preload {
namespace {

constinit Spinlock g_change_lock;

// Opens a file for a job at its descriptor limit: raises the soft limit for a moment, never above
// the hard limit.
long open_beyond_limit(const char* path, int flags) {
  struct rlimit limit;
  if (sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit)) != 0) return -EMFILE;
  constexpr rlim_t kMore = 8;
  struct rlimit more = limit;
  more.rlim_cur = limit.rlim_cur + kMore < limit.rlim_max ? limit.rlim_cur + kMore : limit.rlim_max;
  if (more.rlim_cur == limit.rlim_cur) return -EMFILE;
  sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, sys::word(&more), 0);
  const long opened = sys::call(SYS_openat, AT_FDCWD, sys::word(path), flags, 0);
  sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, sys::word(&limit), 0);
  return opened;
}

// A descriptor of the original; negative if its name leads to another file by now. An original that
// was modified in place qualifies: without Sluice the job would have that file open.
long open_original(const StagedFd& entry) {
  constexpr int kOnce = O_CREAT | O_EXCL | O_TRUNC;
  const int flags = (entry.flags & ~kOnce) | O_CLOEXEC;
  long original = sys::call(SYS_openat, AT_FDCWD, sys::word(entry.path), flags, 0);
  if (original == -EMFILE) original = open_beyond_limit(entry.path, flags);
  if (sys::failed(original)) return original;
  struct stat about;
  if (sys::call(SYS_fstat, original, sys::word(&about)) != 0 || about.st_dev != entry.stat.device ||
      about.st_ino != entry.stat.inode) {
    sys::close(static_cast<int>(original));
    return -ESTALE;
  }
  return original;
}

void put_behind(long original, int number) {
  const long marks = sys::call(SYS_fcntl, number, F_GETFD);
  if (sys::failed(marks)) return;  // closed by a call that no hook saw
  sys::call(SYS_dup3, original, number, (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
}

// Uses of the entry, without the calling thread's own use that a signal handler interrupted.
uint32_t uses_of_others(const StagedFd& entry) {
  const uint32_t all = entry.uses.load(std::memory_order_acquire) & ~kChangingOver;
  return all != 0 && t_state.staged_use == &entry ? all - 1 : all;
}

// A thread that reads by calls inside libc holds the stream's lock. False: the lock cannot be
// taken, for example because a thread that waits for this one holds it.
bool lock_stream(FILE* stream) {
  Backoff backoff;
  while (ftrylockfile(stream) != 0) {
    if (!backoff.wait_bounded()) return false;
  }
  return true;
}

// Calls use(number, entry) for each record that the switch in progress has marked: one for each
// dup.
template <typename Use>
void for_each_marked(Use use) {
  for_each_record([&](int number, StagedFd& entry) {
    if ((entry.uses.load(std::memory_order_acquire) & kChangingOver) != 0) use(number, entry);
  });
}

// Marks the records of this open(): no use of them begins from here on.
void mark(uint64_t serial) {
  for_each_staged([serial](int, StagedFd& entry) {
    if (entry.serial.load(std::memory_order_acquire) == serial) {
      entry.uses.fetch_or(kChangingOver, std::memory_order_acq_rel);
    }
  });
}
void unmark(StagedFd& entry) { entry.uses.fetch_and(~kChangingOver, std::memory_order_acq_rel); }

// Waits until no use of a marked record is in progress. False: the last use has freed the record,
// or made it another open()'s.
bool settle(StagedFd& entry, uint64_t serial) {
  bool used;
  for (Backoff backoff; (used = uses_of_others(entry) != 0) && backoff.wait_bounded();) {
  }
  if (entry.serial.load(std::memory_order_acquire) != serial) return false;
  // Its stream stays valid, since closing it is a use; unless one was left by a jump.
  if (!used && entry.stream != nullptr && lock_stream(entry.stream)) entry.locked = entry.stream;
  return true;
}

// REQUIRES: g_change_lock, with signals blocked. One switch at a time has marked records.
void change_over(uint64_t serial, long original) {
  mark(serial);
  for_each_marked([serial](int, StagedFd& entry) {
    if (!settle(entry, serial)) unmark(entry);
  });
  long offset = 0;  // the dups share it
  for_each_marked([&offset](int number, StagedFd& entry) {
    if (reads_copy(number, entry)) offset = sys::call(SYS_lseek, number, 0, SEEK_CUR);
  });
  if (offset > 0) sys::call(SYS_lseek, original, offset, SEEK_SET);
  for_each_marked([original](int number, StagedFd& entry) {
    if (reads_copy(number, entry)) put_behind(original, number);
    if (entry.locked != nullptr) funlockfile(entry.locked);
    entry.locked = nullptr;
    release_staged(entry);
    unmark(entry);
  });
}

// The number in `text`, -1 if it is not a number.
int number_of(const char* text) {
  if (*text == '\0') return -1;
  int number = 0;
  for (; *text >= '0' && *text <= '9' && number < FdTable<StagedFd>::kAll; ++text)
    number = number * 10 + (*text - '0');
  return *text == '\0' ? number : -1;
}

bool skip(const char** at, const char* word) {
  const size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

// Skips digits and a slash.
bool skip_number(const char** at, int* number) {
  *number = 0;
  const char* digits = *at;
  for (; **at >= '0' && **at <= '9' && *number < 1 << 26; ++*at)
    *number = *number * 10 + (**at - '0');
  return *at != digits && skip(at, "/");
}

// The descriptor of this process that an absolute path names, -1 if it names none.
int descriptor_of(const char* path) {
  const char* at = path;
  int number = 0;
  if (skip(&at, "/dev/fd/")) return number_of(at);
  if (!skip(&at, "/proc/")) return -1;
  if (!skip(&at, "self/") && !skip(&at, "thread-self/") &&
      !(skip_number(&at, &number) && (number == sys::pid() || number == sys::tid()))) {
    return -1;
  }
  if (skip(&at, "task/") && !skip_number(&at, &number)) return -1;
  return skip(&at, "fd/") || skip(&at, "fdinfo/") ? number_of(at) : -1;
}

}  // namespace

bool use_original(int fd) {
  if (staged_fd(fd) == nullptr || in_vfork_child()) return true;
  StagedFd* entry = staged_fd_now(fd);
  if (entry == nullptr) return true;
  const uint64_t serial = entry->serial.load(std::memory_order_acquire);
  if (serial == 0) return true;
  const long original = open_original(*entry);
  if (sys::failed(original)) return staged_fd_now(fd) == nullptr;
  if (entry->owner == t_state.sample_tid) note_copy_left(entry->inode);
  const Locked locked(g_change_lock);
  if (entry->serial.load(std::memory_order_acquire) == serial) change_over(serial, original);
  sys::close(static_cast<int>(original));
  return true;
}

void use_originals_of_window() {
  if (!any_staged_fd() || in_vfork_child()) return;
  const uint32_t self = t_state.sample_tid;
  for_each_staged([self](int fd, StagedFd& entry) {
    if (entry.owner == self) use_original(fd);
  });
}

void originals_after_fork() { g_change_lock.reset(); }

void use_original_of(int folder, const char* path) {
  if (!any_staged_fd() || path == nullptr) return;
  StagePath absolute;
  if (!absolute_path(folder, path, &absolute)) return;
  const int fd = descriptor_of(absolute.text);
  if (fd >= 0) use_original(fd);
}

void use_original_at(int folder, const char* path) {
  if (!any_staged_fd()) return;
  if (path == nullptr || (page_readable(path) && *path == '\0')) {
    use_original(folder);
  } else {
    use_original_of(folder, path);
  }
}

void use_originals_of(const char* path, size_t length) {
  if (!any_staged_fd()) return;
  for_each_staged([&](int fd, StagedFd& entry) {
    if (entry.length < length || memcmp(entry.path, path, length) != 0) return;
    if (entry.length == length || entry.path[length] == '/') use_original(fd);
  });
}

void use_originals_of(uint64_t device, uint64_t inode) {
  if (!any_staged_fd()) return;
  for_each_staged([&](int fd, StagedFd& entry) {
    if (entry.stat.device == device && entry.stat.inode == inode) use_original(fd);
  });
}

void use_originals_for_exec() {
  if (!any_staged_fd() || in_vfork_child()) return;
  for_each_staged([](int fd, StagedFd&) {
    const long marks = sys::call(SYS_fcntl, fd, F_GETFD);
    if (!sys::failed(marks) && (marks & FD_CLOEXEC) == 0) use_original(fd);
  });
}

void use_all_originals() {
  if (!any_staged_fd() || in_vfork_child()) return;
  for_each_staged([](int fd, StagedFd&) { use_original(fd); });
}

}  // namespace sluice::preload
