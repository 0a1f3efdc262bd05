// Opening, duplicating and closing descriptors. No logic: call, report, preserve errno.
#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "preload/base/real.h"
#include "preload/base/thread_state.h"
#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/files/fds.h"
#include "preload/files/opened_ahead.h"
#include "preload/files/read_watch.h"
#include "preload/files/started.h"
#include "preload/samples/places.h"
#include "preload/samples/sample_fds.h"
#include "preload/stage/original.h"
#include "preload/stage/redirect.h"
#include "preload/stage/written.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

constexpr bool writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
}

void forget_fd(int fd) {
  sample_fd_closes(fd);
  fd_closed(fd);
  staged_fd_closed(fd);
}

int opened(int fd, int flags) {
  renew_if_lost();
  if (fd >= 0) fd_opened(fd, flags);
  return fd;
}

// Opens the staged copy of `path` if there is one, else makes the call.
template <typename Call>
int opened_path(int folder, const char* path, int flags, Call call) {
  use_original_of(folder, path);
  if (writes(flags)) path_changes(folder, path);
  const int staged = open_staged(folder, path, flags);
  if (staged >= 0) {
    file_seen(staged, folder, path);
    return staged;
  }
  const StartWatch start_watch((flags & (O_DIRECTORY | O_PATH)) == 0 && !writes(flags));
  const ReadWatch watch;
  const int taken = take_opened(folder, path, flags);
  const int fd = opened(taken >= 0 ? taken : retrying(call, {path}), flags);
  watch.done();
  start_watch.opened(fd, folder, path);
  if (fd < 0) return fd;
  staged_fd_closed(fd);  // the number's last file was closed by a call that no hook saw
  if (writes(flags)) {
    opened_for_writing(fd);
  } else if ((flags & (O_DIRECTORY | O_PATH)) == 0) {
    file_seen(fd, folder, path);
  }
  return fd;
}

// "r", with only modifiers under which a copy may be opened.
bool only_reads(const char* mode) {
  if (mode == nullptr || mode[0] != 'r') return false;
  return mode[1 + strspn(mode + 1, "bcem")] == '\0';
}

// After a stream was opened; `path`: unless it was opened again.
FILE* stream_opened(FILE* file, const char* path) {
  if (file == nullptr) return nullptr;
  const int fd = fileno_unlocked(file);
  const int flags = REAL(fcntl)(fd, F_GETFL);
  if (flags < 0) return file;
  staged_fd_closed(fd);
  fd_opened(fd, flags);
  if (writes(flags)) {
    opened_for_writing(fd);
  } else if (path != nullptr) {
    file_seen(fd, AT_FDCWD, path);
  }
  return file;
}

template <typename Call>
FILE* opened_stream(const char* path, const char* mode, Call call) {
  use_original_of(AT_FDCWD, path);
  const bool reads = only_reads(mode);
  const int flags = O_RDONLY | (reads && strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
  if (!reads) {
    path_changes(AT_FDCWD, path);
  } else {
    const int staged = open_staged(AT_FDCWD, path, flags);
    if (staged >= 0) {
      file_seen(staged, AT_FDCWD, path);
      FILE* file = REAL(fdopen)(staged, mode);
      if (file != nullptr) {
        staged_fd_has_stream(staged, file);
        return file;
      }
      staged_fd_closed(staged);
      REAL(close)(staged);
    }
  }
  const StartWatch start_watch(reads);
  const ReadWatch watch;
  FILE* file = nullptr;
  if (const int taken = reads ? take_opened(AT_FDCWD, path, flags) : -1; taken >= 0) {
    file = REAL(fdopen)(taken, mode);
    if (file == nullptr) REAL(close)(taken);
  }
  if (file == nullptr) file = retrying(call, {path});
  watch.done();
  if (file != nullptr) start_watch.opened(fileno_unlocked(file), AT_FDCWD, path);
  return stream_opened(file, path);
}

// Without a path freopen() opens the same file again: the original, not a copy.
void opens_again(const char* path, FILE* file) {
  const int fd = fileno_unlocked(file);
  if (path == nullptr) use_original(fd);
  use_original_of(AT_FDCWD, path);
  path_changes(AT_FDCWD, path);
  forget_fd(fd);
}

// A dup made by another thread than the window's may outlive the window: switched to the original.
class StagedDup {
 public:
  explicit StagedDup(int fd) : use_(of_window(fd)) {}
  StagedDup(const StagedDup&) = delete;
  StagedDup& operator=(const StagedDup&) = delete;

 private:
  static int of_window(int fd) {
    const StagedFd* staged = staged_fd(fd);
    if (staged != nullptr && staged->owner != t_state.sample_tid) use_original(fd);
    return fd;
  }
  const StagedUse use_;
};

void copied_fd(int from, int to) {
  fd_copied(from, to);
  staged_fd_copied(from, to);
}

}  // namespace

// One line per call: name, folder, parameters, arguments. open() has a mode only where it may
// create.
#define OPEN(name, folder, parameters, arguments)                                  \
  SLUICE_EXPORT int name parameters {                                              \
    mode_t mode = 0;                                                               \
    if ((flags & (O_CREAT | O_TMPFILE)) != 0) {                                    \
      va_list words;                                                               \
      va_start(words, flags);                                                      \
      mode = va_arg(words, mode_t);                                                \
      va_end(words);                                                               \
    }                                                                              \
    return opened_path(folder, path, flags, [&] { return REAL(name) arguments; }); \
  }
OPEN(open, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, AT_FDCWD, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, folder, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, folder, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

#define OPEN_FIXED(name, folder, flags, parameters, arguments)                     \
  SLUICE_EXPORT int name parameters {                                              \
    return opened_path(folder, path, flags, [&] { return REAL(name) arguments; }); \
  }
OPEN_FIXED(__open_2, AT_FDCWD, flags, (const char* path, int flags), (path, flags))
OPEN_FIXED(__open64_2, AT_FDCWD, flags, (const char* path, int flags), (path, flags))
OPEN_FIXED(__openat_2, folder, flags, (int folder, const char* path, int flags),
           (folder, path, flags))
OPEN_FIXED(__openat64_2, folder, flags, (int folder, const char* path, int flags),
           (folder, path, flags))
constexpr int kCreate = O_CREAT | O_WRONLY | O_TRUNC;
OPEN_FIXED(creat, AT_FDCWD, kCreate, (const char* path, mode_t mode), (path, mode))
OPEN_FIXED(creat64, AT_FDCWD, kCreate, (const char* path, mode_t mode), (path, mode))

SLUICE_EXPORT FILE* fopen(const char* path, const char* mode) {
  return opened_stream(path, mode, [&] { return REAL(fopen)(path, mode); });
}
SLUICE_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return opened_stream(path, mode, [&] { return REAL(fopen64)(path, mode); });
}
SLUICE_EXPORT FILE* freopen(const char* path, const char* mode, FILE* file) {
  opens_again(path, file);
  return stream_opened(REAL(freopen)(path, mode, file), nullptr);
}
SLUICE_EXPORT FILE* freopen64(const char* path, const char* mode, FILE* file) {
  opens_again(path, file);
  return stream_opened(REAL(freopen64)(path, mode, file), nullptr);
}
SLUICE_EXPORT FILE* fdopen(int fd, const char* mode) noexcept {
  FILE* file = REAL(fdopen)(fd, mode);
  if (file != nullptr) staged_fd_has_stream(fd, file);
  return file;
}

SLUICE_EXPORT int close(int fd) {
  forget_fd(fd);
  return REAL(close)(fd);
}
SLUICE_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr unsigned kOnlyMarks = 4;  // CLOSE_RANGE_CLOEXEC
  if ((static_cast<unsigned>(flags) & kOnlyMarks) == 0) {
    fds_closed(first, last);
    staged_fds_closed(first, last);
  }
  return REAL(close_range)(first, last, flags);
}
SLUICE_EXPORT void closefrom(int first) noexcept {
  fds_closed(first < 0 ? 0 : static_cast<unsigned>(first), ~0U);
  staged_fds_closed(first < 0 ? 0 : static_cast<unsigned>(first), ~0U);
  REAL(closefrom)(first);
}
SLUICE_EXPORT int fclose(FILE* file) {
  if (file != nullptr) forget_fd(fileno_unlocked(file));
  return REAL(fclose)(file);
}
#define DUPLICATE(name, parameters, arguments)        \
  SLUICE_EXPORT int name parameters noexcept {        \
    const StagedDup duplicate(fd);                    \
    const int copy = REAL(name) arguments;            \
    if (copy >= 0 && copy != fd) copied_fd(fd, copy); \
    return copy;                                      \
  }
DUPLICATE(dup, (int fd), (fd))
DUPLICATE(dup2, (int fd, int to), (fd, to))
DUPLICATE(dup3, (int fd, int to, int flags), (fd, to, flags))

namespace {
// Commands on the descriptor itself work on a copy; all others, as locks and leases, need the
// original. False: a lock or lease, and the original cannot be opened; no other process would see
// a lock on the copy.
bool before_fcntl(int fd, int command) {
  switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
    case F_GETFD:
    case F_SETFD:
    case F_GETFL:
    case F_GETOWN:
    case F_SETOWN:
      return true;
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_SETLEASE:
      close_opened_of(fd);
      sample_fd_locked(fd);
      return use_original(fd);
    default:
      return use_original(fd);
  }
}

template <typename Call>
int file_control(Call call, int fd, int command, void* argument) {
  if (!before_fcntl(fd, command)) {
    errno = ENOLCK;
    return -1;
  }
  if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return call(fd, command, argument);
  const StagedDup duplicate(fd);
  const int copy = call(fd, command, argument);
  if (copy >= 0) copied_fd(fd, copy);
  return copy;
}
}  // namespace

// The third argument is passed as one machine word for every command.
#define CONTROL(name)                                       \
  SLUICE_EXPORT int name(int fd, int command, ...) {        \
    va_list arguments;                                      \
    va_start(arguments, command);                           \
    void* argument = va_arg(arguments, void*);              \
    va_end(arguments);                                      \
    return file_control(REAL(name), fd, command, argument); \
  }
CONTROL(fcntl)
CONTROL(fcntl64)
