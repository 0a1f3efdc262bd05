#include "preload/stage/original.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "preload/process.h"
#include "preload/stage/lookup.h"
#include "preload/stage/probe.h"
#include "preload/sys.h"

namespace sluice::preload {
namespace {

constexpr int kAll = kStagedFdChunk * kStagedFdChunks;

bool same_file(const struct stat& about, const protocol::StageStat& was) {
  return about.st_dev == was.device && about.st_ino == was.inode &&
         static_cast<uint64_t>(about.st_size) == was.size &&
         about.st_mtim.tv_sec == was.modified_s && about.st_mtim.tv_nsec == was.modified_ns;
}

// A descriptor of the original, at the copy's offset; negative if it is not that file any more.
long open_original(int fd, const StagedFd& entry) {
  constexpr int kOnce = O_CREAT | O_EXCL | O_TRUNC;
  const long original =
      sys::call(SYS_openat, AT_FDCWD, sys::word(entry.path), (entry.flags & ~kOnce) | O_CLOEXEC, 0);
  if (sys::failed(original)) return original;
  struct stat about;
  if (sys::call(SYS_fstat, original, sys::word(&about)) != 0 || !same_file(about, entry.stat)) {
    sys::close(static_cast<int>(original));
    return -ESTALE;
  }
  const long offset = sys::call(SYS_lseek, fd, 0, SEEK_CUR);
  if (offset > 0) sys::call(SYS_lseek, original, offset, SEEK_SET);
  return original;
}

// False: it is closed.
bool put_behind(long original, int number) {
  const long marks = sys::call(SYS_fcntl, number, F_GETFD);
  if (sys::failed(marks)) return false;
  sys::call(SYS_dup3, original, number, (marks & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  return true;
}

// Calls use(number, entry) for each descriptor that reads a copy.
template <typename Use>
void for_each_staged(Use use) {
  for (int first = 0; first < kAll; first += kStagedFdChunk) {
    if (g_staged_fds[first / kStagedFdChunk].load(std::memory_order_acquire) == nullptr) continue;
    for (int fd = first; fd < first + kStagedFdChunk; ++fd) {
      if (StagedFd* entry = staged_fd(fd); entry != nullptr) use(fd, *entry);
    }
  }
}

// The number that `text` is, -1 if it is none.
int number_of(const char* text) {
  if (*text == '\0') return -1;
  int number = 0;
  for (; *text >= '0' && *text <= '9' && number < kAll; ++text)
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

// The descriptor that an absolute path means, -1 if it means none.
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

void use_original(int fd) {
  StagedFd* entry = staged_fd_now(fd);
  if (entry == nullptr) return;
  if (in_vfork_child()) {
    const long original = open_original(fd, *entry);
    if (sys::failed(original)) return;
    put_behind(original, fd);
    sys::close(static_cast<int>(original));
    return;
  }
  const uint64_t serial = entry->serial.load(std::memory_order_relaxed);
  const long original = open_original(fd, *entry);
  if (sys::failed(original)) return;
  for_each_staged([&](int number, StagedFd& other) {
    if (other.serial.load(std::memory_order_acquire) != serial ||
        staged_fd_now(number) == nullptr) {
      return;
    }
    if (put_behind(original, number)) staged_fd_closed(number);
  });
  sys::close(static_cast<int>(original));
}

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
    if (entry.length == length && memcmp(entry.path, path, length) == 0) use_original(fd);
  });
}

void use_originals_of(uint64_t device, uint64_t inode) {
  if (!any_staged_fd()) return;
  for_each_staged([&](int fd, StagedFd& entry) {
    if (entry.stat.device == device && entry.stat.inode == inode) use_original(fd);
  });
}

void use_originals_for_exec() {
  if (!any_staged_fd()) return;
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
