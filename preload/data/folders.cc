#include "preload/data/folders.h"

#include <sys/stat.h>

#include <atomic>

#include "preload/base/keep_errno.h"
#include "preload/base/process.h"
#include "preload/data/slow_mounts.h"
#include "preload/session/client.h"
#include "protocol/control.h"

namespace sluice::preload {
namespace {

// A folder that is in memory is there in some microseconds; beyond this a server was asked.
constexpr uint64_t kLongNs = 200'000;
// A command that lists a folder or two needs no optimizer.
constexpr uint32_t kUnreported = 2;
constinit std::atomic<uint32_t> g_opened{0};   // on slow storage, slowly; any thread
constexpr uint64_t kPauseNs = 10'000'000'000;  // after a report that was refused or not answered
constinit std::atomic<uint64_t> g_not_before_ns{0};  // any thread

}  // namespace

void folder_was_listed(DIR* folder, uint64_t took_ns) {
  const KeepErrno keep;
  if (took_ns < kLongNs || in_vfork_child() ||
      sys::now_ns() < g_not_before_ns.load(std::memory_order_relaxed)) {
    return;
  }
  if (process_is_new()) process_after_fork();
  const int fd = dirfd(folder);
  struct stat about;
  if (fd < 0 || sys::call(SYS_fstat, fd, sys::word(&about)) != 0 || !S_ISDIR(about.st_mode) ||
      !on_slow_mount(fd, about)) {
    return;
  }
  if (g_opened.fetch_add(1, std::memory_order_relaxed) < kUnreported) return;
  protocol::Listed body = {0, 0, took_ns};
  if (ask_in_session({.kind = protocol::MessageKind::kListed,
                      .expected = protocol::MessageKind::kDone,
                      .body = &body,
                      .body_size = sizeof body,
                      .fd = fd}) != 0) {
    g_not_before_ns.store(sys::now_ns() + kPauseNs, std::memory_order_relaxed);
  }
}

}  // namespace sluice::preload
