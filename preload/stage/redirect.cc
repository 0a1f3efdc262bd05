#include "preload/stage/redirect.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "preload/keep_errno.h"
#include "preload/process.h"
#include "preload/session/client.h"
#include "preload/settings.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/sys.h"

namespace sluice::preload {

using protocol::Stage;
using protocol::StageCopy;

namespace {

// What a copy can be opened with and nobody tells the difference.
constexpr int kHarmless = O_CLOEXEC | O_NOCTTY | O_LARGEFILE | O_NOATIME | O_NOFOLLOW | 0100000;

// Files that this process, or one that it was forked from, opened for writing: what it writes is
// in no copy that it may know of. A Bloom filter, as large as it is cheap; a file too much is only
// read from where it is.
constexpr uint32_t kWrittenBits = 1U << 15;
constinit std::atomic<uint64_t> g_written[kWrittenBits / 64] = {};
constinit std::atomic<bool> g_wrote{false};

uint64_t written_hash(uint64_t device, uint64_t inode) {
  const uint64_t mixed = (device * 0x9e3779b97f4a7c15ULL ^ inode) * 0xff51afd7ed558ccdULL;
  return mixed ^ mixed >> 32;
}
void note_written(uint64_t device, uint64_t inode) {
  const uint64_t hash = written_hash(device, inode);
  for (const uint64_t bit : {hash % kWrittenBits, (hash >> 16) % kWrittenBits}) {
    g_written[bit / 64].fetch_or(1ULL << bit % 64, std::memory_order_relaxed);
  }
  g_wrote.store(true, std::memory_order_release);
}
bool maybe_written(uint64_t device, uint64_t inode) {
  if (!g_wrote.load(std::memory_order_acquire)) return false;
  const uint64_t hash = written_hash(device, inode);
  for (const uint64_t bit : {hash % kWrittenBits, (hash >> 16) % kWrittenBits}) {
    if ((g_written[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1) == 0) return false;
  }
  return true;
}

// Whether this process may read the original. What everybody or its owner may read needs no
// asking; else it may have other groups, or other capabilities, than who made the copy.
bool may_read(const StagePath& path, const protocol::StageStat& was, uint32_t user) {
  constexpr uint32_t kAll = S_IRUSR | S_IRGRP | S_IROTH;
  constexpr long kFaccessat2 = 439;
  if ((was.mode & kAll) == kAll) return true;
  if (was.uid == user && (was.mode & S_IRUSR) != 0) return true;
  return sys::call(kFaccessat2, AT_FDCWD, sys::word(path.text), R_OK, AT_EACCESS) == 0;
}

// The copy, if it may be used instead of the original now.
bool usable_copy(const Stage& stage, const StagePath& path, bool follow, bool wait,
                 StageCopy* copy) {
  if (!find_staged(stage, path, wait, copy)) return false;
  if (!follow && (copy->flags & protocol::kStageLink) != 0) return false;
  if (maybe_written(copy->stat.device, copy->stat.inode)) return false;
  if (!may_read(path, copy->stat, stage.header.uid)) return false;
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
  // Refused for the files of others, and copies are all our own.
  if ((flags & O_NOATIME) != 0 && copy.stat.uid != stage->header.uid) return -1;
  char name[protocol::kStageName];
  protocol::stage_name(name, stage->header.folder, copy.name);
  const long opened = sys::call(SYS_openat, AT_FDCWD, sys::word(name), flags, 0);
  if (sys::failed(opened)) return -1;  // evicted meanwhile
  const int fd = static_cast<int>(opened);
  if (staged_fd_opened(fd, stage->header.copy_device, flags, copy, absolute.text,
                       absolute.length)) {
    return fd;
  }
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
         !maybe_written(copy->stat.device, copy->stat.inode) &&
         (follow || (copy->flags & protocol::kStageLink) == 0);
}

void path_changes(int folder, const char* path) {
  if (!any_staged_fd()) return;
  StagePath absolute;
  if (!absolute_path(folder, path, &absolute)) return;
  use_originals_of(absolute.text, absolute.length);
}

void path_changed(int folder, const char* path) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr) return;
  if (path == nullptr || (page_readable(path) && *path == '\0')) {  // AT_EMPTY_PATH
    fd_changed(folder);
    return;
  }
  const KeepErrno keep;
  StagePath absolute;
  const bool named = stage_path_of(*stage, folder, path, &absolute);
  tell_changed(*stage, named ? &absolute : nullptr, 0, 0);
}

void fd_changed(int fd) {
  const Stage* stage = stage_in_use();
  if (stage == nullptr) return;
  const KeepErrno keep;
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && S_ISREG(about.st_mode) &&
      holds_originals(*stage, about.st_dev)) {
    tell_changed(*stage, nullptr, about.st_dev, about.st_ino);
  }
}

void opened_for_writing(int fd, int folder, const char* path) {
  if (!g_settings.stage || in_vfork_child()) return;
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0 || !S_ISREG(about.st_mode)) return;
  note_written(about.st_dev, about.st_ino);
  const Stage* stage = stage_in_use();
  if (stage == nullptr || !holds_originals(*stage, about.st_dev)) return;
  use_originals_of(about.st_dev, about.st_ino);
  const KeepErrno keep;
  StagePath absolute;
  const bool named = stage_path_of(*stage, folder, path, &absolute);
  tell_changed(*stage, named ? &absolute : nullptr, about.st_dev, about.st_ino);
}

}  // namespace sluice::preload
