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
// A command that lists a folder or two needs no optimizer, nor does one that is soon done:
// starting it takes some milliseconds.
constexpr uint32_t kUnreported = 2;
constexpr uint64_t kUnreportedNs = 50'000'000;
constinit std::atomic<uint32_t> g_opened{0};     // on slow storage, slowly; any thread
constinit std::atomic<uint64_t> g_opened_ns{0};  // that this took; likewise
constexpr uint64_t kPauseNs = 10'000'000'000;    // after a report that was refused or not answered
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
  const uint32_t opened = g_opened.fetch_add(1, std::memory_order_relaxed);
  const uint64_t before_ns = g_opened_ns.fetch_add(took_ns, std::memory_order_relaxed);
  if (opened < kUnreported || before_ns < kUnreportedNs) return;
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
