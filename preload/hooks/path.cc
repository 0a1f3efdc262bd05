// Calls that take paths, names, attribute values or addresses: nothing is consumed before the
// kernel has read them, so EFAULT from a closed cell means "pin and ask again".
#include <cstdarg>

#include "preload/cells/retry.h"
#include "preload/real.h"
#include "preload/stage/opened.h"
#include "preload/stage/redirect.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

// One line per call: result type, name, parameters, arguments, and the pointers among them.
#define RETRIED(result, name, parameters, arguments, ...)                 \
  SLUICE_EXPORT result name parameters noexcept {                         \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }
#define RETRIED_CANCELLABLE(result, name, parameters, arguments, ...)     \
  SLUICE_EXPORT result name parameters {                                  \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }

// The same, of a call that changes what the path names (the second and third argument).
#define CHANGING(result, name, folder, path, parameters, arguments, ...)               \
  SLUICE_EXPORT result name parameters noexcept {                                      \
    const result done = retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
    if (done == 0) path_changed(folder, path);                                         \
    return done;                                                                       \
  }

using Path = const char*;

RETRIED(int, euidaccess, (Path p, int m), (p, m), p)
CHANGING(int, unlink, AT_FDCWD, p, (Path p), (p), p)
CHANGING(int, unlinkat, d, p, (int d, Path p, int f), (d, p, f), p)
RETRIED(int, mkdir, (Path p, mode_t m), (p, m), p)
RETRIED(int, mkdirat, (int d, Path p, mode_t m), (d, p, m), p)
CHANGING(int, rmdir, AT_FDCWD, p, (Path p), (p), p)
CHANGING(int, link, AT_FDCWD, p, (Path p, Path q), (p, q), p, q)
CHANGING(int, linkat, d, p, (int d, Path p, int e, Path q, int f), (d, p, e, q, f), p, q)
RETRIED(int, symlink, (Path p, Path q), (p, q), p, q)
RETRIED(int, symlinkat, (Path p, int d, Path q), (p, d, q), p, q)
RETRIED(ssize_t, readlinkat, (int d, Path p, char* b, size_t n), (d, p, b, n), p)
RETRIED(int, chdir, (Path p), (p), p)
CHANGING(int, chmod, AT_FDCWD, p, (Path p, mode_t m), (p, m), p)
CHANGING(int, fchmodat, d, p, (int d, Path p, mode_t m, int f), (d, p, m, f), p)
CHANGING(int, chown, AT_FDCWD, p, (Path p, uid_t u, gid_t g), (p, u, g), p)
CHANGING(int, lchown, AT_FDCWD, p, (Path p, uid_t u, gid_t g), (p, u, g), p)
CHANGING(int, fchownat, d, p, (int d, Path p, uid_t u, gid_t g, int f), (d, p, u, g, f), p)
CHANGING(int, truncate, AT_FDCWD, p, (Path p, off_t n), (p, n), p)
CHANGING(int, truncate64, AT_FDCWD, p, (Path p, off64_t n), (p, n), p)
CHANGING(int, utimensat, d, p, (int d, Path p, const struct timespec t[2], int f), (d, p, t, f), p,
         t)
CHANGING(int, utimes, AT_FDCWD, p, (Path p, const struct timeval t[2]), (p, t), p, t)
CHANGING(int, utime, AT_FDCWD, p, (Path p, const struct utimbuf* t), (p, t), p, t)
RETRIED_CANCELLABLE(DIR*, opendir, (Path p), (p), p)
RETRIED(int, mknod, (Path p, mode_t m, dev_t d), (p, m, d), p)
RETRIED(int, mkfifo, (Path p, mode_t m), (p, m), p)
RETRIED(int, statfs, (Path p, struct statfs* s), (p, s), p)
RETRIED(int, statfs64, (Path p, struct statfs64* s), (p, s), p)
RETRIED(ssize_t, getxattr, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
RETRIED(ssize_t, lgetxattr, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
CHANGING(int, setxattr, AT_FDCWD, p, (Path p, Path n, const void* v, size_t s, int f),
         (p, n, v, s, f), p, n, v)
CHANGING(int, lsetxattr, AT_FDCWD, p, (Path p, Path n, const void* v, size_t s, int f),
         (p, n, v, s, f), p, n, v)
CHANGING(int, removexattr, AT_FDCWD, p, (Path p, Path n), (p, n), p, n)
CHANGING(int, lremovexattr, AT_FDCWD, p, (Path p, Path n), (p, n), p, n)
RETRIED(ssize_t, listxattr, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(ssize_t, llistxattr, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(int, memfd_create, (Path n, unsigned f), (n, f), n)
RETRIED(int, setsockopt, (int d, int l, int o, const void* v, socklen_t n), (d, l, o, v, n), v)
RETRIED(int, bind, (int d, const struct sockaddr* a, socklen_t n), (d, a, n), a)
RETRIED_CANCELLABLE(int, connect, (int d, const struct sockaddr* a, socklen_t n), (d, a, n), a)

// Two names that change what they mean.
#define RENAMING(name, parameters, arguments, from, p, to, q)                \
  SLUICE_EXPORT int name parameters noexcept {                               \
    const int done = retrying([&] { return REAL(name) arguments; }, {p, q}); \
    if (done == 0) {                                                         \
      path_changed(from, p);                                                 \
      path_changed(to, q);                                                   \
    }                                                                        \
    return done;                                                             \
  }
RENAMING(rename, (Path p, Path q), (p, q), AT_FDCWD, p, AT_FDCWD, q)
RENAMING(renameat, (int d, Path p, int e, Path q), (d, p, e, q), d, p, e, q)
RENAMING(renameat2, (int d, Path p, int e, Path q, unsigned f), (d, p, e, q, f), d, p, e, q)

// Another root gives paths another meaning.
SLUICE_EXPORT int chroot(Path path) noexcept {
  const int done = retrying([&] { return REAL(chroot)(path); }, {path});
  if (done == 0) give_up_stage();
  return done;
}

SLUICE_EXPORT ssize_t readlink(Path path, char* out, size_t size) noexcept {
  use_original_of(path);
  return retrying([&] { return REAL(readlink)(path, out, size); }, {path});
}
