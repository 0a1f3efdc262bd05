#include "preload/stage/lookup.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/stage/identity.h"
#include "preload/stage/probe.h"
#include "protocol/page.h"
#include "protocol/stage_io.h"

namespace sluice::preload {

using protocol::Stage;
using protocol::StageCopy;
using protocol::StageState;

constinit std::atomic<const Stage*> g_stage{nullptr};
constinit std::atomic<bool> g_stage_given_up{false};

namespace {

constexpr uint64_t kWaitNs = 2'000'000'000;  // for a copy that is being fetched
constexpr uint64_t kSliceNs = 50'000'000;    // of one wait, between checks of the optimizer
constexpr uint64_t kSecond = 1'000'000'000;

// The length of a string at any address, at most `most`; `most` if it is longer or cannot be read
// to its end.
size_t length_of(const char* text, size_t most) {
  for (size_t at = 0; at < most;) {
    if (!page_readable(text + at)) return most;
    const size_t left = kPage - (reinterpret_cast<uintptr_t>(text + at) & (kPage - 1));
    const size_t here = left < most - at ? left : most - at;
    const size_t length = strnlen(text + at, here);
    if (length < here) return at + length;
    at += here;
  }
  return most;
}

// True if the record's state may have changed.
bool wait_for(const Stage& stage, uint32_t record, uint64_t deadline) {
  const uint64_t now = sys::now_ns();
  if (now >= deadline || stage_silent(stage)) return false;
  const uint64_t left = deadline - now < kSliceNs ? deadline - now : kSliceNs;
  const timespec slice = {0, static_cast<long>(left)};
  sys::call(SYS_futex, sys::word(&stage.files[record].state), FUTEX_WAIT,
            static_cast<long>(StageState::kFetching), sys::word(&slice));
  return true;
}

}  // namespace

bool use_stage(int fd) {
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0 ||
      static_cast<uint64_t>(about.st_size) != sizeof(Stage)) {
    return false;
  }
  const long memory = sys::call(SYS_mmap, 0, sizeof(Stage), PROT_READ, MAP_SHARED, fd, 0);
  if (sys::failed(memory)) return false;
  const auto* stage = reinterpret_cast<const Stage*>(memory);
  struct stat folder;
  if (stage->header.magic != protocol::kStageMagic || stage->header.version != protocol::kVersion ||
      !same_identity(*stage) ||
      // Owned by this user and inaccessible to others, which can put no file there.
      sys::call(SYS_lstat, sys::word(stage->header.folder), sys::word(&folder)) != 0 ||
      !S_ISDIR(folder.st_mode) || folder.st_uid != stage->header.identity.user ||
      (folder.st_mode & 077) != 0) {
    sys::call(SYS_munmap, memory, sizeof(Stage));
    return false;
  }
  sys::advise(static_cast<uintptr_t>(memory), sizeof(Stage), MADV_DONTDUMP);
  g_stage.store(stage, std::memory_order_release);
  g_stage_given_up.store(false, std::memory_order_release);
  return true;
}

void give_up_stage() { g_stage_given_up.store(true, std::memory_order_release); }

bool absolute_path(int folder, const char* path, StagePath* out) {
  out->length = 0;
  if (path == nullptr) return false;
  const size_t length = length_of(path, protocol::kStagePath);
  if (length == 0 || length == protocol::kStagePath) return false;
  char base[protocol::kStagePath];
  long base_length = 0;
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      base_length = sys::call(SYS_getcwd, sys::word(base), sizeof base);
      base_length = base_length > 0 ? base_length - 1 : 0;  // with its NUL
    } else {
      char link[32] = "/proc/self/fd/";
      char digits[12];
      size_t count = 0;
      for (auto left = static_cast<unsigned>(folder); count == 0 || left != 0; left /= 10) {
        digits[count++] = static_cast<char>('0' + left % 10);
      }
      for (size_t i = 0; i < count; ++i) link[14 + i] = digits[count - 1 - i];
      link[14 + count] = '\0';
      base_length = sys::call(SYS_readlink, sys::word(link), sys::word(base), sizeof base);
    }
    if (base_length <= 0 || static_cast<size_t>(base_length) >= sizeof base) return false;
  }
  out->length =
      protocol::stage_path(out->text, base, static_cast<size_t>(base_length), path, length);
  return out->length != 0;
}

bool stage_path_of(const Stage& stage, int folder, const char* path, StagePath* out) {
  if (!absolute_path(folder, path, out)) return false;
  out->key = protocol::stage_key(stage.header.secret, out->text, out->length);
  return true;
}

bool find_staged(const Stage& stage, const StagePath& path, bool wait, StageCopy* copy) {
  uint64_t deadline = 0;
  for (;;) {
    StageState state = StageState::kFree;
    const uint32_t record = protocol::find_copy(stage, path.key, copy, &state);
    if (record == protocol::kNoStageFile) return false;
    if (state == StageState::kStaged) return true;
    if (!wait || state != StageState::kFetching) return false;
    if (deadline == 0) deadline = sys::now_ns() + kWaitNs;
    if (!wait_for(stage, record, deadline)) return false;
  }
}

bool stage_silent(const Stage& stage) {
  const uint64_t beat = stage.header.heartbeat_ns.load(std::memory_order_relaxed);
  return beat + protocol::kStageSilentNs < sys::now_ns() ||
         stage.header.closed.load(std::memory_order_relaxed) != 0;
}

bool is_fresh(const StageCopy& copy) {
  return sys::now_ns() < copy.validated_ns + g_settings.stale * kSecond;
}

bool still_staged(const Stage& stage, const StagePath& path, const StageCopy& copy) {
  StageCopy now;
  StageState state = StageState::kFree;
  return protocol::find_copy(stage, path.key, &now, &state) != protocol::kNoStageFile &&
         state == StageState::kStaged && now.name == copy.name;
}

bool still_same(const char* path, const StageCopy& copy) {
  struct stat about;
  const protocol::StageStat& was = copy.stat;
  return sys::call(SYS_stat, sys::word(path), sys::word(&about)) == 0 &&
         about.st_dev == was.device && about.st_ino == was.inode &&
         static_cast<uint64_t>(about.st_size) == was.size &&
         about.st_mtim.tv_sec == was.modified_s && about.st_mtim.tv_nsec == was.modified_ns &&
         about.st_ctim.tv_sec == was.changed_s && about.st_ctim.tv_nsec == was.changed_ns &&
         about.st_mode == was.mode && about.st_uid == was.uid && about.st_gid == was.gid;
}

}  // namespace sluice::preload
