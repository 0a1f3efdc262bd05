#include "preload/stage/redirect.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "preload/base/process.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/session/client.h"
#include "preload/stage/copy_counts.h"
#include "preload/stage/identity.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/stage/settled.h"
#include "preload/stage/window.h"
#include "preload/stage/written.h"

namespace sluice::preload {

using protocol::Stage;
using protocol::StageCopy;

namespace {

// Flags with which opening a copy is indistinguishable from opening the original.
constexpr int kHarmless = O_CLOEXEC | O_NOCTTY | O_LARGEFILE | O_NOATIME | O_NOFOLLOW | 0100000;

// The optimizer cannot evict open copies, so their number and bytes are limited: beyond these
// limits, files are read from the original.
constexpr uint64_t kMostOpen = 512;
constexpr uint64_t kMostOpenBytes = 64 << 20;
// Descriptor numbers below the limit that are reserved for switching to originals.
constexpr uint64_t kSpareNumbers = 16;

// The copy, if it equals what an open of the original would give the calling thread now. The order
// of the checks matters: a change that ended before this call either is not settled, or has already
// invalidated the copy.
bool usable_copy(const Stage& stage, const StagePath& path, bool follow, bool wait,
                 StageCopy* copy) {
  if (!find_staged(stage, path, wait, copy)) return false;
  if (!follow && (copy->flags & protocol::kStageLink) != 0) return false;
  if (maybe_written(copy->stat.device, copy->stat.inode)) return false;
  if (!same_identity(stage)) return false;
  const bool watched = (copy->flags & protocol::kStageUnwatched) == 0;
  if (watched && is_fresh(*copy) && changes_settled(stage)) return still_staged(stage, path, *copy);
  return still_same(path.text, *copy);
}

bool holds_originals(const Stage& stage, uint64_t device) {
  for (const std::atomic<uint64_t>& known : stage.header.devices) {
    const uint64_t value = known.load(std::memory_order_relaxed);
    if (value == device || value == UINT64_MAX) return true;
  }
  return false;
}

bool may_use_stage(const Stage* stage) {
  // If the optimizer does not want sample events, no sample has a copy.
  return stage != nullptr && in_window() && samples_wanted() && !in_vfork_child();
}

// Counts an open that would have been given a copy in a window.
void note_beside_window(const Stage* stage, int folder, const char* path) {
  if (stage == nullptr || !beside_window() || !samples_wanted() || in_vfork_child()) return;
  StagePath absolute;
  StageCopy copy;
  if (stage_path_of(*stage, folder, path, &absolute) &&
      find_staged(*stage, absolute, false, &copy)) {
    g_copies_missed.fetch_add(1, std::memory_order_relaxed);
  }
}

bool numbers_are_scarce(int fd) {
  struct rlimit limit;
  return sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, sys::word(&limit)) != 0 ||
         static_cast<uint64_t>(fd) + kSpareNumbers >= limit.rlim_cur;
}

}  // namespace

int open_staged(int folder, const char* path, int flags) {
  const Stage* stage = stage_in_use();
  if ((flags & ~kHarmless) != O_RDONLY) return -1;
  if (!may_use_stage(stage)) {
    note_beside_window(stage, folder, path);
    return -1;
  }
  if (staged_fds_open() >= kMostOpen || staged_bytes_open() >= kMostOpenBytes) return -1;
  StagePath absolute;
  StageCopy copy;
  if (!stage_path_of(*stage, folder, path, &absolute) ||
      !usable_copy(*stage, absolute, (flags & O_NOFOLLOW) == 0, true, &copy)) {
    return -1;
  }
  // The kernel refuses O_NOATIME on files of other users; copies all belong to this user.
  if ((flags & O_NOATIME) != 0 && copy.stat.uid != stage->header.identity.user) return -1;
  char name[protocol::kStageName];
  protocol::stage_name(name, stage->header.folder, copy.name);
  const long opened = sys::call(SYS_openat, AT_FDCWD, sys::word(name), flags, 0);
  if (sys::failed(opened)) return -1;  // evicted meanwhile
  const int fd = static_cast<int>(opened);
  if (!numbers_are_scarce(fd) && staged_fd_opened(fd, stage->header.copy_device, flags, copy,
                                                  absolute.text, absolute.length)) {
    note_copy_given(copy.copy_inode);
    return fd;
  }
  sys::close(fd);
  return -1;
}

bool stat_staged(int folder, const char* path, bool follow, StageCopy* copy) {
  const Stage* stage = stage_in_use();
  if (!may_use_stage(stage)) return false;
  StagePath absolute;
  // Does not wait for a copy that is being fetched: stat() of the original is as fast.
  return stage_path_of(*stage, folder, path, &absolute) &&
         usable_copy(*stage, absolute, follow, false, copy);
}

void path_changes(int folder, const char* path) {
  if (!any_staged_fd()) return;
  StagePath absolute;
  if (!absolute_path(folder, path, &absolute)) return;
  use_originals_of(absolute.text, absolute.length);
}

void path_linked(int folder, const char* path) {
  if (!g_settings.stage || in_vfork_child()) return;
  struct stat about;
  const bool itself = page_readable(path) && *path == '\0';  // AT_EMPTY_PATH
  if (sys::call(SYS_newfstatat, folder, sys::word(path), sys::word(&about),
                itself ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  note_written(about.st_dev, about.st_ino);
  const Stage* stage = g_stage.load(std::memory_order_acquire);
  if (stage != nullptr && !holds_originals(*stage, about.st_dev)) return;
  if (process_is_new()) process_after_fork();
  settle(about.st_dev, about.st_ino, false);
}

void mounts_changed() {
  if (!g_settings.stage || in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  give_up_stage();
  settle(0, 0, false);
}

}  // namespace sluice::preload
