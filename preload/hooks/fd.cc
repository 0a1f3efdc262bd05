// Calls that query or change the file behind a descriptor: for a staged copy they return the
// original's stored attributes, or the descriptor is switched to the original first. Descriptors
// that read no copy cost one table lookup.
#include <linux/fs.h>

#include <cerrno>
#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/retry.h"
#include "preload/files/opened_ahead.h"
#include "preload/samples/sample_fds.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/stage/redirect.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

static_assert(sizeof(struct stat) == sizeof(struct stat64));

namespace {

// Called after the kernel has filled `out`. The record may be stale, if its descriptor was closed
// by a call that no hook saw: then this descriptor does not read the copy.
int answered(int fd, int result, void* out) {
  const StagedFd* staged = staged_fd(fd);
  auto* real = static_cast<struct stat*>(out);
  if (staged != nullptr && result == 0 && real->st_dev == staged->device &&
      real->st_ino == staged->inode) {
    fill(staged->stat, real);
  }
  return result;
}

}  // namespace

SLUICE_EXPORT int fstat(int fd, struct stat* out) noexcept {
  return answered(fd, REAL(fstat)(fd, out), out);
}
SLUICE_EXPORT int fstat64(int fd, struct stat64* out) noexcept {
  return answered(fd, REAL(fstat64)(fd, out), out);
}
SLUICE_EXPORT int __fxstat(int version, int fd, struct stat* out) {
  return answered(fd, REAL(__fxstat)(version, fd, out), out);
}
SLUICE_EXPORT int __fxstat64(int version, int fd, struct stat64* out) {
  return answered(fd, REAL(__fxstat64)(version, fd, out), out);
}

// The following calls need the original.
#define ORIGINAL(result, name, parameters, arguments) \
  SLUICE_EXPORT result name parameters noexcept {     \
    use_original(fd);                                 \
    return REAL(name) arguments;                      \
  }
ORIGINAL(int, fstatfs, (int fd, struct statfs* s), (fd, s))
ORIGINAL(int, fstatfs64, (int fd, struct statfs64* s), (fd, s))
ORIGINAL(int, fstatvfs, (int fd, struct statvfs* s), (fd, s))
ORIGINAL(int, fstatvfs64, (int fd, struct statvfs64* s), (fd, s))
ORIGINAL(ssize_t, flistxattr, (int fd, char* list, size_t size), (fd, list, size))

// The same; the call's names and values may lie in a closed cell.
#define ORIGINAL_RETRIED(result, name, parameters, arguments, ...)        \
  SLUICE_EXPORT result name parameters noexcept {                         \
    use_original(fd);                                                     \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }
ORIGINAL_RETRIED(ssize_t, fgetxattr, (int fd, const char* n, void* v, size_t s), (fd, n, v, s), n)

#define CHANGING(name, parameters, arguments, ...) \
  ORIGINAL_RETRIED(int, name, parameters, arguments, __VA_ARGS__)
CHANGING(fchmod, (int fd, mode_t mode), (fd, mode), nullptr)
CHANGING(fchown, (int fd, uid_t user, gid_t group), (fd, user, group), nullptr)
CHANGING(futimens, (int fd, const struct timespec t[2]), (fd, t), t)
CHANGING(futimes, (int fd, const struct timeval t[2]), (fd, t), t)
CHANGING(fsetxattr, (int fd, const char* n, const void* v, size_t s, int f), (fd, n, v, s, f), n, v)
CHANGING(fremovexattr, (int fd, const char* n), (fd, n), n)

// No other process would see a lock on the copy: without the original the call fails.
#define LOCKING(name, parameters, arguments)           \
  SLUICE_EXPORT int name parameters {                  \
    sample_fd_locked(fd);                              \
    close_opened_of(fd);                               \
    if (use_original(fd)) return REAL(name) arguments; \
    errno = ENOLCK;                                    \
    return -1;                                         \
  }
LOCKING(flock, (int fd, int operation) noexcept, (fd, operation))
LOCKING(lockf, (int fd, int command, off_t length), (fd, command, length))
LOCKING(lockf64, (int fd, int command, off64_t length), (fd, command, length))

// The third argument is passed as one machine word for every request.
SLUICE_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  // FICLONE and FICLONERANGE require both files on the same file system.
  if (request == FICLONE) use_original(static_cast<int>(reinterpret_cast<intptr_t>(argument)));
  if (request == FICLONERANGE && page_readable(argument)) {
    use_original(static_cast<int>(static_cast<file_clone_range*>(argument)->src_fd));
  }
  // These have the same answer for the copy; TCGETS is isatty(), which stdio calls for every file.
  if (request != TCGETS && request != FIONREAD) use_original(fd);
  return REAL(ioctl)(fd, request, argument);
}
