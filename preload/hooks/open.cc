// Opening, copying and closing descriptors. No logic: call, report, keep errno.
#include <cstdarg>

#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/fds.h"
#include "preload/real.h"

using sluice::preload::fd_closed;
using sluice::preload::fd_copied;
using sluice::preload::fd_opened;
using sluice::preload::fds_closed;
using sluice::preload::renew_if_lost;
using sluice::preload::retrying;

namespace {

int opened(int fd, int flags) {
  renew_if_lost();
  if (fd >= 0) fd_opened(fd, flags);
  return fd;
}

FILE* opened(FILE* file) {
  if (file != nullptr) {
    const int fd = fileno_unlocked(file);
    const int flags = REAL(fcntl)(fd, F_GETFL);
    if (flags >= 0) fd_opened(fd, flags);
  }
  return file;
}

// open() has a mode only where it may create.
#define MODE_OF(flags)                          \
  mode_t mode = 0;                              \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list arguments;                          \
    va_start(arguments, flags);                 \
    mode = va_arg(arguments, mode_t);           \
    va_end(arguments);                          \
  }

}  // namespace

SLUICE_EXPORT int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return opened(retrying([&] { return REAL(open)(path, flags, mode); }, {path}), flags);
}
SLUICE_EXPORT int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return opened(retrying([&] { return REAL(open64)(path, flags, mode); }, {path}), flags);
}
SLUICE_EXPORT int openat(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return opened(retrying([&] { return REAL(openat)(folder, path, flags, mode); }, {path}), flags);
}
SLUICE_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  MODE_OF(flags)
  return opened(retrying([&] { return REAL(openat64)(folder, path, flags, mode); }, {path}), flags);
}
SLUICE_EXPORT int __open_2(const char* path, int flags) {
  return opened(retrying([&] { return REAL(__open_2)(path, flags); }, {path}), flags);
}
SLUICE_EXPORT int __open64_2(const char* path, int flags) {
  return opened(retrying([&] { return REAL(__open64_2)(path, flags); }, {path}), flags);
}
SLUICE_EXPORT int __openat_2(int folder, const char* path, int flags) {
  return opened(retrying([&] { return REAL(__openat_2)(folder, path, flags); }, {path}), flags);
}
SLUICE_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  return opened(retrying([&] { return REAL(__openat64_2)(folder, path, flags); }, {path}), flags);
}
SLUICE_EXPORT int creat(const char* path, mode_t mode) {
  return opened(retrying([&] { return REAL(creat)(path, mode); }, {path}), O_WRONLY);
}
SLUICE_EXPORT int creat64(const char* path, mode_t mode) {
  return opened(retrying([&] { return REAL(creat64)(path, mode); }, {path}), O_WRONLY);
}
SLUICE_EXPORT FILE* fopen(const char* path, const char* mode) {
  return opened(retrying([&] { return REAL(fopen)(path, mode); }, {path}));
}
SLUICE_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return opened(retrying([&] { return REAL(fopen64)(path, mode); }, {path}));
}
SLUICE_EXPORT FILE* freopen(const char* path, const char* mode, FILE* file) {
  fd_closed(fileno_unlocked(file));
  return opened(REAL(freopen)(path, mode, file));
}
SLUICE_EXPORT FILE* freopen64(const char* path, const char* mode, FILE* file) {
  fd_closed(fileno_unlocked(file));
  return opened(REAL(freopen64)(path, mode, file));
}
SLUICE_EXPORT FILE* fdopen(int fd, const char* mode) noexcept { return REAL(fdopen)(fd, mode); }

SLUICE_EXPORT int close(int fd) {
  fd_closed(fd);
  return REAL(close)(fd);
}
SLUICE_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr unsigned kOnlyMarks = 4;  // CLOSE_RANGE_CLOEXEC
  if ((static_cast<unsigned>(flags) & kOnlyMarks) == 0) fds_closed(first, last);
  return REAL(close_range)(first, last, flags);
}
SLUICE_EXPORT void closefrom(int first) noexcept {
  fds_closed(first < 0 ? 0 : static_cast<unsigned>(first), ~0U);
  REAL(closefrom)(first);
}
SLUICE_EXPORT int fclose(FILE* file) {
  if (file != nullptr) fd_closed(fileno_unlocked(file));
  return REAL(fclose)(file);
}
SLUICE_EXPORT int dup(int fd) noexcept {
  const int copy = REAL(dup)(fd);
  if (copy >= 0) fd_copied(fd, copy);
  return copy;
}
SLUICE_EXPORT int dup2(int fd, int to) noexcept {
  const int copy = REAL(dup2)(fd, to);
  if (copy >= 0 && fd != to) fd_copied(fd, copy);
  return copy;
}
SLUICE_EXPORT int dup3(int fd, int to, int flags) noexcept {
  const int copy = REAL(dup3)(fd, to, flags);
  if (copy >= 0) fd_copied(fd, copy);
  return copy;
}

namespace {
int copied(int fd, int command, int result) {
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) fd_copied(fd, result);
  return result;
}
}  // namespace

// The third argument is a word whatever it means.
SLUICE_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return copied(fd, command, REAL(fcntl)(fd, command, argument));
}
SLUICE_EXPORT int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return copied(fd, command, REAL(fcntl64)(fd, command, argument));
}
