#include "preload/files/opened_ahead.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "preload/base/keep_errno.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "preload/stage/lookup.h"
#include "protocol/access_identity.h"
#include "protocol/control.h"
#include "protocol/path_hash.h"

namespace sluice::preload {
namespace {

bool is_open_ahead(uint64_t hash) {
  const auto* place =
      &g_connection.load()->shared->header.opened_ahead[protocol::opened_bucket(hash)];
  for (uint32_t i = 0; i < protocol::kOpenedBucket; ++i) {
    if (place[i].load(std::memory_order_acquire) == hash) return true;
  }
  return false;
}

// Whether the path leads to the file as it was opened: attributes are in memory, as after any
// lookup. A change of permissions, owner, size or content changes that time.
bool still_leads_to(int folder, const char* path, int fd, const protocol::TakenFile& taken) {
  struct stat by_path, about;
  return sys::call(SYS_newfstatat, folder, sys::word(path), sys::word(&by_path), 0) == 0 &&
         sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && S_ISREG(about.st_mode) &&
         by_path.st_dev == taken.device && by_path.st_ino == taken.inode &&
         about.st_dev == taken.device && about.st_ino == taken.inode &&
         by_path.st_ctim.tv_sec * int64_t{1'000'000'000} + by_path.st_ctim.tv_nsec ==
             taken.changed_ns;
}

// -1: it is not available after all.
int ask_for(const StagePath& path, protocol::TakenFile* taken) {
  protocol::TakeFile body = {};
  const auto call = [](long number, long a, long b, long c) { return sys::call(number, a, b, c); };
  if (!protocol::read_access_identity(call, &body.identity)) return -1;
  body.thread = static_cast<uint32_t>(sys::call(SYS_gettid));
  int fd = -1;
  const int error = ask_in_session({.kind = protocol::MessageKind::kTakeFile,
                                    .expected = protocol::MessageKind::kFileTaken,
                                    .body = &body,
                                    .body_size = sizeof body,
                                    .text = path.text,
                                    .text_size = path.length + 1,
                                    .answer = taken,
                                    .answer_size = sizeof *taken,
                                    .answer_fd = &fd,
                                    .start = false});
  if (error != 0 && fd >= 0) {
    sys::close(fd);
    fd = -1;
  }
  return fd;
}

}  // namespace

// As if the file had been opened with `flags`; it was received as close-on-exec.
bool set_flags(int fd, int flags) {
  if ((flags & O_NONBLOCK) != 0) {
    const long now = sys::call(SYS_fcntl, fd, F_GETFL, 0);
    if (sys::failed(now) || sys::failed(sys::call(SYS_fcntl, fd, F_SETFL, now | O_NONBLOCK))) {
      return false;
    }
  }
  return (flags & O_CLOEXEC) != 0 || !sys::failed(sys::call(SYS_fcntl, fd, F_SETFD, 0));
}

// Not inlined: open() may be called where the stack is small.
__attribute__((noinline)) int take_opened_file(int folder, const char* path, int flags) {
  if (in_vfork_child()) return -1;
  const KeepErrno keep;
  // A thread that has no_new_privs may be confined by Landlock, which no descriptor is checked by.
  if (process_is_new()) process_after_fork();
  if (session_is_lost() || sys::call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) return -1;
  StagePath absolute;
  if (!absolute_path(folder, path, &absolute) ||
      !is_open_ahead(protocol::path_hash(absolute.text, absolute.length))) {
    return -1;
  }
  absolute.text[absolute.length] = '\0';
  protocol::TakenFile taken = {};
  const int fd = ask_for(absolute, &taken);
  if (fd < 0) return -1;
  if (!still_leads_to(folder, path, fd, taken) || !set_flags(fd, flags)) {
    sys::close(fd);
    return -1;
  }
  count(protocol::ClientMetric::opened_ahead);
  return fd;
}

__attribute__((noinline)) bool may_be_open_ahead(int folder, const char* path) {
  struct stat about;
  return sys::call(SYS_newfstatat, folder, sys::word(path), sys::word(&about),
                   AT_SYMLINK_NOFOLLOW) == 0 &&
         major(about.st_dev) == 0;
}

__attribute__((noinline)) bool may_be_open_ahead(int fd) {
  struct stat about;
  return sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && major(about.st_dev) == 0;
}

__attribute__((noinline)) void close_opened_files() {
  if (in_vfork_child()) return;
  const KeepErrno keep;
  if (process_is_new()) process_after_fork();
  if (session_is_lost()) return;
  protocol::Start body = {};
  ask_in_session({.kind = protocol::MessageKind::kCloseAhead,
                  .expected = protocol::MessageKind::kDone,
                  .body = &body,
                  .body_size = sizeof body,
                  .start = false});
}

}  // namespace sluice::preload
