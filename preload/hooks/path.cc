// Calls that take paths, names, attribute values or addresses: nothing is consumed before the
// kernel has read them, so EFAULT from a closed cell means "pin and ask again".
#include <cstdarg>

#include "preload/cells/retry.h"
#include "preload/real.h"

using sluice::preload::retrying;

// One line per call: result type, name, parameters, arguments, and the pointers among them.
#define RETRIED(result, name, parameters, arguments, ...)                 \
  SLUICE_EXPORT result name parameters noexcept {                         \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }
#define RETRIED_CANCELLABLE(result, name, parameters, arguments, ...)     \
  SLUICE_EXPORT result name parameters {                                  \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }

using Path = const char*;

RETRIED(int, stat, (Path p, struct stat* s), (p, s), p)
RETRIED(int, stat64, (Path p, struct stat64* s), (p, s), p)
RETRIED(int, lstat, (Path p, struct stat* s), (p, s), p)
RETRIED(int, lstat64, (Path p, struct stat64* s), (p, s), p)
RETRIED(int, fstatat, (int d, Path p, struct stat* s, int f), (d, p, s, f), p)
RETRIED(int, fstatat64, (int d, Path p, struct stat64* s, int f), (d, p, s, f), p)
RETRIED(int, statx, (int d, Path p, int f, unsigned m, struct statx* s), (d, p, f, m, s), p)
RETRIED_CANCELLABLE(int, __xstat, (int v, Path p, struct stat* s), (v, p, s), p)
RETRIED_CANCELLABLE(int, __xstat64, (int v, Path p, struct stat64* s), (v, p, s), p)
RETRIED_CANCELLABLE(int, __lxstat, (int v, Path p, struct stat* s), (v, p, s), p)
RETRIED_CANCELLABLE(int, __lxstat64, (int v, Path p, struct stat64* s), (v, p, s), p)
RETRIED_CANCELLABLE(int, __fxstatat, (int v, int d, Path p, struct stat* s, int f), (v, d, p, s, f),
                    p)
RETRIED_CANCELLABLE(int, __fxstatat64, (int v, int d, Path p, struct stat64* s, int f),
                    (v, d, p, s, f), p)
RETRIED(int, access, (Path p, int m), (p, m), p)
RETRIED(int, faccessat, (int d, Path p, int m, int f), (d, p, m, f), p)
RETRIED(int, euidaccess, (Path p, int m), (p, m), p)
RETRIED(int, unlink, (Path p), (p), p)
RETRIED(int, unlinkat, (int d, Path p, int f), (d, p, f), p)
RETRIED(int, rename, (Path p, Path q), (p, q), p, q)
RETRIED(int, renameat, (int d, Path p, int e, Path q), (d, p, e, q), p, q)
RETRIED(int, renameat2, (int d, Path p, int e, Path q, unsigned f), (d, p, e, q, f), p, q)
RETRIED(int, mkdir, (Path p, mode_t m), (p, m), p)
RETRIED(int, mkdirat, (int d, Path p, mode_t m), (d, p, m), p)
RETRIED(int, rmdir, (Path p), (p), p)
RETRIED(int, link, (Path p, Path q), (p, q), p, q)
RETRIED(int, linkat, (int d, Path p, int e, Path q, int f), (d, p, e, q, f), p, q)
RETRIED(int, symlink, (Path p, Path q), (p, q), p, q)
RETRIED(int, symlinkat, (Path p, int d, Path q), (p, d, q), p, q)
RETRIED(ssize_t, readlink, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(ssize_t, readlinkat, (int d, Path p, char* b, size_t n), (d, p, b, n), p)
RETRIED(int, chdir, (Path p), (p), p)
RETRIED(int, chmod, (Path p, mode_t m), (p, m), p)
RETRIED(int, fchmodat, (int d, Path p, mode_t m, int f), (d, p, m, f), p)
RETRIED(int, chown, (Path p, uid_t u, gid_t g), (p, u, g), p)
RETRIED(int, lchown, (Path p, uid_t u, gid_t g), (p, u, g), p)
RETRIED(int, fchownat, (int d, Path p, uid_t u, gid_t g, int f), (d, p, u, g, f), p)
RETRIED(int, truncate, (Path p, off_t n), (p, n), p)
RETRIED(int, truncate64, (Path p, off64_t n), (p, n), p)
RETRIED(int, utimensat, (int d, Path p, const struct timespec t[2], int f), (d, p, t, f), p, t)
RETRIED(int, utimes, (Path p, const struct timeval t[2]), (p, t), p, t)
RETRIED(int, utime, (Path p, const struct utimbuf* t), (p, t), p, t)
RETRIED_CANCELLABLE(DIR*, opendir, (Path p), (p), p)
RETRIED(int, mknod, (Path p, mode_t m, dev_t d), (p, m, d), p)
RETRIED(int, mkfifo, (Path p, mode_t m), (p, m), p)
RETRIED(int, chroot, (Path p), (p), p)
RETRIED(int, statfs, (Path p, struct statfs* s), (p, s), p)
RETRIED(int, statfs64, (Path p, struct statfs64* s), (p, s), p)
RETRIED(ssize_t, getxattr, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
RETRIED(ssize_t, lgetxattr, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
RETRIED(ssize_t, fgetxattr, (int d, Path n, void* v, size_t s), (d, n, v, s), n)
RETRIED(int, setxattr, (Path p, Path n, const void* v, size_t s, int f), (p, n, v, s, f), p, n, v)
RETRIED(int, lsetxattr, (Path p, Path n, const void* v, size_t s, int f), (p, n, v, s, f), p, n, v)
RETRIED(int, fsetxattr, (int d, Path n, const void* v, size_t s, int f), (d, n, v, s, f), n, v)
RETRIED(int, removexattr, (Path p, Path n), (p, n), p, n)
RETRIED(int, lremovexattr, (Path p, Path n), (p, n), p, n)
RETRIED(int, fremovexattr, (int d, Path n), (d, n), n)
RETRIED(ssize_t, listxattr, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(ssize_t, llistxattr, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(int, memfd_create, (Path n, unsigned f), (n, f), n)
RETRIED(int, setsockopt, (int d, int l, int o, const void* v, socklen_t n), (d, l, o, v, n), v)
RETRIED(int, bind, (int d, const struct sockaddr* a, socklen_t n), (d, a, n), a)
RETRIED_CANCELLABLE(int, connect, (int d, const struct sockaddr* a, socklen_t n), (d, a, n), a)
