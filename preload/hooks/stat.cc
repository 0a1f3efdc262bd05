// Attributes by path. For a staged file these are the original's when it was staged; all others
// come from the kernel, with the path pinned if it lies in a closed cell.
#include "preload/base/real.h"
#include "preload/cells/retry.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/stage/redirect.h"

using namespace sluice::preload;  // NOLINT: every line here is about it
using sluice::protocol::StageCopy;
using sluice::protocol::StageStat;

namespace {

using Path = const char*;

constexpr int kKnown = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;

// Whether fstatat or statx is called without a path, for `folder` itself.
bool is_empty(Path path, int flags) {
  return (flags & AT_EMPTY_PATH) != 0 && path != nullptr && page_readable(path) && *path == '\0';
}

// The copy's own attributes are never returned: the stored ones of the original (true), or the
// caller asks the kernel about the original (false).
template <typename Answer>
bool answered_or_original(int folder, Path path, int flags, Answer answer) {
  if (stage_in_use() == nullptr && !any_staged_fd()) return false;
  use_original_of(folder, path);
  const bool itself = is_empty(path, flags);
  const StagedFd* staged = itself ? staged_fd_now(folder) : nullptr;
  if (itself && staged == nullptr) return false;
  StageCopy copy;
  if ((flags & ~kKnown) == 0 &&
      (itself || stat_staged(folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &copy)) &&
      answer(itself ? staged->stat : copy.stat)) {
    return true;
  }
  if (itself) use_original(folder);
  return false;
}

bool answered(int folder, Path path, int flags, void* out) {
  return answered_or_original(folder, path, flags, [out](const StageStat& stat) {
    if (!writable(out, sizeof(struct stat))) return false;
    fill(stat, static_cast<struct stat*>(out));
    return true;
  });
}

bool answered_statx(int folder, Path path, int flags, unsigned mask, struct statx* out) {
  return answered_or_original(folder, path, flags, [out, mask](const StageStat& stat) {
    return writable(out, sizeof *out) && fill(stat, mask, out);
  });
}

// True if there is a copy, since then this user can read the original.
bool readable(int folder, Path path, int mode, int flags) {
  use_original_at(folder, path);
  if (stage_in_use() == nullptr || (mode & ~R_OK) != 0 ||
      (flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW)) != 0 ||
      sys::call(SYS_getuid) != sys::call(SYS_geteuid)) {
    return false;
  }
  StageCopy copy;
  return stat_staged(folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, &copy);
}

}  // namespace

// One line per call: name, parameters, arguments, and the folder, path, flags and buffer in them.
#define STAT(name, parameters, arguments, folder, path, flags, out) \
  SLUICE_EXPORT int name parameters {                               \
    if (answered(folder, path, flags, out)) return 0;               \
    return retrying([&] { return REAL(name) arguments; }, {path});  \
  }

constexpr int kHere = AT_FDCWD;
constexpr int kLink = AT_SYMLINK_NOFOLLOW;

STAT(stat, (Path p, struct stat* s) noexcept, (p, s), kHere, p, 0, s)
STAT(stat64, (Path p, struct stat64* s) noexcept, (p, s), kHere, p, 0, s)
STAT(lstat, (Path p, struct stat* s) noexcept, (p, s), kHere, p, kLink, s)
STAT(lstat64, (Path p, struct stat64* s) noexcept, (p, s), kHere, p, kLink, s)
STAT(fstatat, (int d, Path p, struct stat* s, int f) noexcept, (d, p, s, f), d, p, f, s)
STAT(fstatat64, (int d, Path p, struct stat64* s, int f) noexcept, (d, p, s, f), d, p, f, s)
STAT(__xstat, (int v, Path p, struct stat* s), (v, p, s), kHere, p, 0, s)
STAT(__xstat64, (int v, Path p, struct stat64* s), (v, p, s), kHere, p, 0, s)
STAT(__lxstat, (int v, Path p, struct stat* s), (v, p, s), kHere, p, kLink, s)
STAT(__lxstat64, (int v, Path p, struct stat64* s), (v, p, s), kHere, p, kLink, s)
STAT(__fxstatat, (int v, int d, Path p, struct stat* s, int f), (v, d, p, s, f), d, p, f, s)
STAT(__fxstatat64, (int v, int d, Path p, struct stat64* s, int f), (v, d, p, s, f), d, p, f, s)

SLUICE_EXPORT int statx(int folder, Path path, int flags, unsigned mask,
                        struct statx* out) noexcept {
  if (answered_statx(folder, path, flags, mask, out)) return 0;
  return retrying([&] { return REAL(statx)(folder, path, flags, mask, out); }, {path});
}

SLUICE_EXPORT int access(Path path, int mode) noexcept {
  if (readable(AT_FDCWD, path, mode, 0)) return 0;
  return retrying([&] { return REAL(access)(path, mode); }, {path});
}
SLUICE_EXPORT int faccessat(int folder, Path path, int mode, int flags) noexcept {
  if (readable(folder, path, mode, flags)) return 0;
  return retrying([&] { return REAL(faccessat)(folder, path, mode, flags); }, {path});
}
