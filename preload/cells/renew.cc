#include "preload/cells/renew.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "preload/base/keep_errno.h"
#include "preload/base/own_stack.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/cells/observed.h"
#include "preload/handler/mapping.h"
#include "preload/session/client.h"
#include "preload/session/events.h"

namespace sluice::preload {

constinit std::atomic<uint64_t> g_next_look_ns{UINT64_MAX};

namespace {

constexpr uint64_t kRenewNs = 1'000'000'000;
constexpr uint64_t kFailedNs = 10'000'000'000;

constinit std::atomic<uint32_t> g_renewing{0};  // 1 while a thread renews; that thread owns g_text
// Longer than any line of maps: a path has at most 4096 bytes.
constinit char g_text[8192];

// One line of /proc/self/maps.
struct Area {
  uintptr_t begin = 0, end = 0;
  uint64_t inode = 0;
  const char* path = nullptr;  // as the kernel writes it, in the buffer of the line
};

// "begin-end perms offset device inode    path". False for areas that map no file.
bool parse(const char* line, Area* out) {
  char* at = nullptr;
  out->begin = strtoul(line, &at, 16);
  if (*at != '-') return false;
  out->end = strtoul(at + 1, &at, 16);
  for (int field = 0; field < 3 && at != nullptr; ++field) at = strchr(at + 1, ' ');
  if (at == nullptr) return false;
  out->inode = strtoul(at, &at, 10);
  out->path = at + strspn(at, " ");
  return out->inode != 0 && *out->path == '/';
}

// Passes the file of `area` to the optimizer again. O_PATH: closing any other kind of descriptor
// would release the job's fcntl locks on that file.
bool follow_again(const Area& area, protocol::CheckpointMode mode, FollowedFile* out) {
  const long fd =
      sys::call(SYS_openat, AT_FDCWD, sys::word(area.path), O_PATH | O_CLOEXEC | O_NOFOLLOW);
  if (sys::failed(fd)) return false;
  struct stat about;
  const bool same = sys::call(SYS_fstat, fd, sys::word(&about)) == 0 && S_ISREG(about.st_mode) &&
                    about.st_ino == area.inode;
  const bool followed =
      same && follow_file(static_cast<int>(fd), about, area.path, true, mode, out);
  sys::close(static_cast<int>(fd));
  return followed;
}

// False if the area has a mapping to renew and that failed.
bool renew(const Area& area) {
  FollowedFile file;
  if (const MappingRef mapping = find_mapping(area.begin, area.end)) {
    if (session_of_file_lives(mapping->file.load(std::memory_order_relaxed))) return true;
    const auto mode =
        mapping->page_mode ? protocol::CheckpointMode::kPage : protocol::CheckpointMode::kCell;
    if (!follow_again(area, mode, &file)) return false;
    mapping->file.store(file.file, std::memory_order_relaxed);
    const uintptr_t base = mapping->base.load(std::memory_order_relaxed);
    emit_mapped(file.file, mapping->file_offset,
                mapping->end.load(std::memory_order_relaxed) - base, base,
                mapping->by_page.load(std::memory_order_relaxed) ? protocol::kFlagByPage : 0);
    return true;
  }
  uint32_t observed = 0;
  if (!find_observed(area.begin, area.end, &observed) || session_of_file_lives(observed)) {
    return true;
  }
  if (!follow_again(area, protocol::CheckpointMode::kObserve, &file)) return false;
  renew_observed(observed, file.file);
  return true;
}

// Renews all areas of the process. REQUIRES: this thread set g_renewing.
bool renew_all() {
  const long fd =
      sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/maps"), O_RDONLY | O_CLOEXEC);
  if (sys::failed(fd)) return false;
  bool good = true;
  size_t used = 0;
  for (;;) {
    const long got = sys::call(SYS_read, fd, sys::word(g_text + used),
                               static_cast<long>(sizeof g_text - 1 - used));
    if (got <= 0) break;
    used += static_cast<size_t>(got);
    g_text[used] = '\0';
    char* line = g_text;
    for (char* end = strchr(line, '\n'); end != nullptr; end = strchr(line, '\n')) {
      *end = '\0';
      Area area;
      if (parse(line, &area)) good &= renew(area);
      line = end + 1;
    }
    used = static_cast<size_t>(g_text + used - line);
    memmove(g_text, line, used);
    if (used == sizeof g_text - 1) used = 0;
  }
  sys::close(static_cast<int>(fd));
  return good;
}

}  // namespace

void renewal_wanted() {
  uint64_t none = UINT64_MAX;
  g_next_look_ns.compare_exchange_strong(none, sys::now_ns() + kRenewNs, std::memory_order_relaxed);
}

void renewal_after_fork() { g_renewing.store(0, std::memory_order_relaxed); }

void look_for_loss() {
  const uint64_t now = sys::now_ns();
  if (now < g_next_look_ns.load(std::memory_order_relaxed)) return;
  const KeepErrno keep;
  // A signal handler or another thread that arrives meanwhile skips this.
  if (!in_vfork_child() && !on_signal_stack() &&
      g_renewing.exchange(1, std::memory_order_acquire) == 0) {
    if (process_is_new()) process_after_fork();
    g_next_look_ns.store(now + kRenewNs, std::memory_order_relaxed);
    if (optimizer_died() && !renew_all()) {
      g_next_look_ns.store(sys::now_ns() + kFailedNs, std::memory_order_relaxed);
    }
    g_renewing.store(0, std::memory_order_release);
  }
}

}  // namespace sluice::preload
