// What a program opens on slow storage as it starts: code, and what it configures itself by. The
// optimizer stores the list for the command (executable and first arguments), and when the command
// starts again with nothing in memory, fetches all of it ahead, many files at a time.
//
// Only of the process that was executed, not of its fork children, until samples are read or a
// minute has passed. errno is preserved.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/base/settings.h"
#include "preload/base/sys.h"

namespace sluice::preload {

// Any thread.
extern std::atomic<bool> g_start_recorded;   // cleared once for good
extern std::atomic<bool> g_start_asked;      // the program has opened files on slow storage
extern std::atomic<uint64_t> g_start_began;  // the first open, ns; 0: none yet

// Times a call that opens a file for reading. Trivially destructible: a cancelled thread unwinds
// through it.
class StartWatch {
 public:
  explicit StartWatch(bool used)
      : begin_ns_(used && g_start_recorded.load(std::memory_order_relaxed) ? sys::now_ns() : 0) {}
  // The call has just opened `path` as `fd`; negative: it failed.
  void opened(int fd, int folder, const char* path) const {
    if (begin_ns_ == 0 || fd < 0) return;
    const uint64_t now_ns = sys::now_ns(), took_ns = now_ns - begin_ns_;
    uint64_t began = 0;
    g_start_began.compare_exchange_strong(began, now_ns, std::memory_order_relaxed);
    // Of a file that was opened at once nothing is asked: most are on local disks.
    if (took_ns < kLongNs && !g_start_asked.load(std::memory_order_relaxed) &&
        (began == 0 || now_ns - began < kLongestNs)) {
      return;
    }
    note(fd, folder, path, took_ns);
  }

 private:
  static constexpr uint64_t kLongNs = 200'000;  // an open that takes longer has asked a server
  static constexpr uint64_t kLongestNs = 60'000'000'000;  // of a start
  static bool is_over();
  static void note(int fd, int folder, const char* path, uint64_t took_ns);
  uint64_t begin_ns_;
};

// A library is about to be loaded from `path`.
void start_loads(const char* path);
// The start is over: reports the list. Not from a signal handler; needs 32 KiB of stack.
void start_ends();
// In a fork's child: it records nothing.
void start_after_fork();

}  // namespace sluice::preload
