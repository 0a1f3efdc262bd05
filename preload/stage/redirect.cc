#include "preload/stage/redirect.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "preload/process.h"
#include "preload/session/client.h"
#include "preload/stage/opened.h"
#include "preload/sys.h"

namespace sluice::preload {

using protocol::Stage;
using protocol::StageCopy;

namespace {

// What a copy can be opened with and nobody tells the difference.
constexpr int kHarmless = O_CLOEXEC | O_NOCTTY | O_LARGEFILE | O_NOATIME | O_NOFOLLOW | 0100000;

// The copy, if it may be used instead of the original now.
bool usable_copy(const Stage& stage, const StagePath& path, bool follow, bool wait,
                 StageCopy* copy) {
  if (!find_staged(stage, path, wait, copy)) return false;
  if (!follow && (copy->flags & protocol::kStageLink) != 0) return false;
  if (is_fresh(stage, *copy)) return true;
  return still_same(path.text, *copy);
}

void tell_changed(const Stage& stage, const StagePath* path, uint64_t device, uint64_t inode) {
  if (in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  protocol::Changed body = {};
  if (path != nullptr) {
    body.key[0] = path->key.low;
    body.key[1] = path->key.high;
  }
  body.device = device;
  body.inode = inode;
  if (ask_in_session({.kind = protocol::MessageKind::kChanged,
                      .expected = protocol::MessageKind::kDone,
                      .body = &body,
                      .body_size = sizeof body}) != 0 &&
      &stage == g_stage.load(std::memory_order_relaxed)) {
    give_up_stage();  // nobody to drop it
  }
}

bool holds_originals(const Stage& stage, uint64_t device) {
  for (const std::atomic<uint64_t>& known : stage.header.devices) {
    const uint64_t value = known.load(std::memory_order_relaxed);
    if (value == device || value == UINT64_MAX) return true;
  }
  return false;
}

}  // namespace

int open_staged(int folder, const char* path, int flags) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr || (flags & ~kHarmless) != O_RDONLY || in_vfork_child()) return -1;
  StagePath absolute;
  StageCopy copy;
  if (!stage_path_of(*stage, folder, path, &absolute) ||
      !usable_copy(*stage, absolute, (flags & O_NOFOLLOW) == 0, true, &copy)) {
    return -1;
  }
  char name[protocol::kStageName];
  protocol::stage_name(name, stage->header.folder, copy.name);
  const long opened =
      sys::call(SYS_openat, AT_FDCWD, sys::word(name), flags | O_NOFOLLOW | O_LARGEFILE, 0);
  if (sys::failed(opened)) return -1;  // evicted meanwhile
  const int fd = static_cast<int>(opened);
  if (staged_fd_opened(fd, flags, copy, absolute.text, absolute.length)) return fd;
  sys::close(fd);
  return -1;
}

bool stat_staged(int folder, const char* path, bool follow, StageCopy* copy) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr || in_vfork_child()) return false;
  StagePath absolute;
  if (!stage_path_of(*stage, folder, path, &absolute)) return false;
  // Not waited for, and not compared: the original's answer is as near.
  return find_staged(*stage, absolute, false, copy) && is_fresh(*stage, *copy) &&
         (follow || (copy->flags & protocol::kStageLink) == 0);
}

void path_changed(int folder, const char* path) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr) return;
  const int saved = errno;
  StagePath absolute;
  const bool named = stage_path_of(*stage, folder, path, &absolute);
  tell_changed(*stage, named ? &absolute : nullptr, 0, 0);
  errno = saved;
}

void opened_for_writing(int fd, int folder, const char* path) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr) return;
  const int saved = errno;
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && S_ISREG(about.st_mode) &&
      holds_originals(*stage, about.st_dev)) {
    StagePath absolute;
    const bool named = stage_path_of(*stage, folder, path, &absolute);
    tell_changed(*stage, named ? &absolute : nullptr, about.st_dev, about.st_ino);
  }
  errno = saved;
}

}  // namespace sluice::preload
