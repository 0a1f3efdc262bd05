// Calls that take paths, names, attribute values or addresses: they have no effect before the
// kernel has read these, so after EFAULT, as from a closed cell, they are retried with them pinned.
#include <cstdarg>

#include "preload/base/real.h"
#include "preload/cells/retry.h"
#include "preload/data/folders.h"
#include "preload/files/opened_ahead.h"
#include "preload/stage/identity.h"
#include "preload/stage/original.h"
#include "preload/stage/redirect.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

// One line per call: result type, name, parameters, arguments, and the pointers among them.
#define RETRIED(result, name, parameters, arguments, ...)                 \
  SLUICE_EXPORT result name parameters {                                  \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }

// The same, for a call that queries the file that folder and path name, which may be a descriptor
// under /proc.
#define ASKING(result, name, folder, path, parameters, arguments, ...)    \
  SLUICE_EXPORT result name parameters noexcept {                         \
    use_original_at(folder, path);                                        \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }

// The same, for a call that changes the file that the path names.
#define CHANGING(result, name, folder, path, parameters, arguments, ...)  \
  SLUICE_EXPORT result name parameters noexcept {                         \
    use_original_at(folder, path);                                        \
    path_changes(folder, path);                                           \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }
// The same, for a call that removes it.
#define REMOVING(name, folder, path, parameters, arguments, ...)          \
  SLUICE_EXPORT int name parameters noexcept {                            \
    use_original_at(folder, path);                                        \
    path_changes(folder, path);                                           \
    close_opened_at(folder, path);                                        \
    return retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
  }
// The same, for a call that gives the file another name.
#define LINKING(name, folder, path, parameters, arguments, ...)                     \
  SLUICE_EXPORT int name parameters noexcept {                                      \
    use_original_at(folder, path);                                                  \
    path_changes(folder, path);                                                     \
    const int done = retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
    if (done == 0) path_linked(folder, path);                                       \
    return done;                                                                    \
  }

using Path = const char*;
constexpr int kHere = AT_FDCWD;

ASKING(int, euidaccess, kHere, p, (Path p, int m), (p, m), p)
REMOVING(unlink, kHere, p, (Path p), (p), p)
REMOVING(unlinkat, d, p, (int d, Path p, int f), (d, p, f), p)
RETRIED(int, mkdir, (Path p, mode_t m) noexcept, (p, m), p)
RETRIED(int, mkdirat, (int d, Path p, mode_t m) noexcept, (d, p, m), p)
REMOVING(rmdir, kHere, p, (Path p), (p), p)
LINKING(link, kHere, p, (Path p, Path q), (p, q), p, q)
LINKING(linkat, d, p, (int d, Path p, int e, Path q, int f), (d, p, e, q, f), p, q)
RETRIED(int, symlink, (Path p, Path q) noexcept, (p, q), p, q)
RETRIED(int, symlinkat, (Path p, int d, Path q) noexcept, (p, d, q), p, q)
ASKING(ssize_t, readlinkat, d, p, (int d, Path p, char* b, size_t n), (d, p, b, n), p)
RETRIED(int, chdir, (Path p) noexcept, (p), p)
CHANGING(int, chmod, kHere, p, (Path p, mode_t m), (p, m), p)
CHANGING(int, fchmodat, d, p, (int d, Path p, mode_t m, int f), (d, p, m, f), p)
CHANGING(int, chown, kHere, p, (Path p, uid_t u, gid_t g), (p, u, g), p)
CHANGING(int, lchown, kHere, p, (Path p, uid_t u, gid_t g), (p, u, g), p)
CHANGING(int, fchownat, d, p, (int d, Path p, uid_t u, gid_t g, int f), (d, p, u, g, f), p)
CHANGING(int, truncate, kHere, p, (Path p, off_t n), (p, n), p)
CHANGING(int, truncate64, kHere, p, (Path p, off64_t n), (p, n), p)
CHANGING(int, utimensat, d, p, (int d, Path p, const struct timespec t[2], int f), (d, p, t, f), p,
         t)
CHANGING(int, utimes, kHere, p, (Path p, const struct timeval t[2]), (p, t), p, t)
CHANGING(int, utime, kHere, p, (Path p, const struct utimbuf* t), (p, t), p, t)
RETRIED(int, mknod, (Path p, mode_t m, dev_t d) noexcept, (p, m, d), p)
RETRIED(int, mkfifo, (Path p, mode_t m) noexcept, (p, m), p)
ASKING(int, statfs, kHere, p, (Path p, struct statfs* s), (p, s), p)
ASKING(int, statfs64, kHere, p, (Path p, struct statfs64* s), (p, s), p)
ASKING(ssize_t, getxattr, kHere, p, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
ASKING(ssize_t, lgetxattr, kHere, p, (Path p, Path n, void* v, size_t s), (p, n, v, s), p, n)
CHANGING(int, setxattr, kHere, p, (Path p, Path n, const void* v, size_t s, int f), (p, n, v, s, f),
         p, n, v)
CHANGING(int, lsetxattr, kHere, p, (Path p, Path n, const void* v, size_t s, int f),
         (p, n, v, s, f), p, n, v)
CHANGING(int, removexattr, kHere, p, (Path p, Path n), (p, n), p, n)
CHANGING(int, lremovexattr, kHere, p, (Path p, Path n), (p, n), p, n)
ASKING(ssize_t, listxattr, kHere, p, (Path p, char* b, size_t n), (p, b, n), p)
ASKING(ssize_t, llistxattr, kHere, p, (Path p, char* b, size_t n), (p, b, n), p)
RETRIED(int, memfd_create, (Path n, unsigned f) noexcept, (n, f), n)
RETRIED(int, setsockopt, (int d, int l, int o, const void* v, socklen_t n) noexcept,
        (d, l, o, v, n), v)
RETRIED(int, bind, (int d, const struct sockaddr* a, socklen_t n) noexcept, (d, a, n), a)
RETRIED(int, connect, (int d, const struct sockaddr* a, socklen_t n), (d, a, n), a)

SLUICE_EXPORT DIR* opendir(Path p) {
  const FolderWatch watch;
  DIR* folder = retrying([&] { return REAL(opendir)(p); }, {p});
  watch.opened(folder);
  return folder;
}
SLUICE_EXPORT DIR* fdopendir(int fd) {
  const FolderWatch watch;
  DIR* folder = REAL(fdopendir)(fd);
  watch.opened(folder);
  return folder;
}
SLUICE_EXPORT dirent* readdir(DIR* folder) { return read_folder(folder, REAL(readdir)); }
SLUICE_EXPORT dirent64* readdir64(DIR* folder) { return read_folder(folder, REAL(readdir64)); }

// Two paths that name other files afterwards.
#define RENAMING(name, parameters, arguments, from, p, to, q)      \
  SLUICE_EXPORT int name parameters noexcept {                     \
    path_changes(from, p);                                         \
    path_changes(to, q);                                           \
    close_opened_at(from, p);                                      \
    close_opened_at(to, q);                                        \
    return retrying([&] { return REAL(name) arguments; }, {p, q}); \
  }
RENAMING(rename, (Path p, Path q), (p, q), kHere, p, AT_FDCWD, q)
RENAMING(renameat, (int d, Path p, int e, Path q), (d, p, e, q), d, p, e, q)
RENAMING(renameat2, (int d, Path p, int e, Path q, unsigned f), (d, p, e, q, f), d, p, e, q)

SLUICE_EXPORT int chroot(Path p) noexcept {
  const IdentityChange change;
  return retrying([&] { return REAL(chroot)(p); }, {p});
}

#define MOUNTING(name, parameters, arguments, ...)                                  \
  SLUICE_EXPORT int name parameters noexcept {                                      \
    const IdentityChange change;                                                    \
    close_opened();                                                                 \
    const int done = retrying([&] { return REAL(name) arguments; }, {__VA_ARGS__}); \
    if (done == 0) mounts_changed();                                                \
    return done;                                                                    \
  }
MOUNTING(mount, (Path s, Path t, Path y, unsigned long f, const void* d), (s, t, y, f, d), s, t, y,
         d)
MOUNTING(umount, (Path p), (p), p)
MOUNTING(umount2, (Path p, int f), (p, f), p)

ASKING(ssize_t, readlink, kHere, p, (Path p, char* b, size_t n), (p, b, n), p)
ASKING(ssize_t, __readlink_chk, kHere, p, (Path p, char* b, size_t n, size_t m), (p, b, n, m), p)
ASKING(ssize_t, __readlinkat_chk, d, p, (int d, Path p, char* b, size_t n, size_t m),
       (d, p, b, n, m), p)
ASKING(char*, realpath, kHere, p, (Path p, char* b), (p, b), p)
ASKING(char*, __realpath_chk, kHere, p, (Path p, char* b, size_t n), (p, b, n), p)
ASKING(char*, canonicalize_file_name, kHere, p, (Path p), (p), p)
