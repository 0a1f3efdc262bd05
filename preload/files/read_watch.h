// Measures how long a call that reads data took, for session/waits.h.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "preload/base/keep_errno.h"
#include "preload/base/settings.h"
#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/files/fds.h"
#include "preload/session/waits.h"

namespace sluice::preload {

// Times a call that reads. Outside of samples, a descriptor that reads no data costs one load.
// Trivially destructible: a cancelled thread unwinds through it.
class ReadWatch {
 public:
  explicit ReadWatch(int fd)
      : begin_ns_((data_fd(fd) != nullptr || t_state.samples_begun != 0) && !reads_for_others_now()
                      ? sys::now_ns()
                      : 0) {}
  // Within samples: a call that reads no bytes, but may wait.
  ReadWatch()
      : begin_ns_(t_state.samples_begun != 0 && !reads_for_others_now() ? sys::now_ns() : 0) {}

  // Before a call that reads `size` bytes, at the descriptor's own offset if `offset` is negative.
  void large_read(int fd, off_t offset, size_t size) {
    if (size < kLargeRead) return;
    fd_large_read(fd, offset, size);
    if (begin_ns_ != 0) call_ns_ = sys::now_ns();
  }
  // The time after the call, for done(); 0 if the call is not timed.
  uint64_t end_ns() const { return begin_ns_ != 0 ? sys::now_ns() : 0; }
  // The call has read `bytes` (or failed) by `end_ns`. Not counted if the descriptor turned out to
  // read no data. errno is preserved.
  void done(int fd, ssize_t bytes, uint64_t end_ns) const {
    if (begin_ns_ == 0) return;
    if (bytes >= static_cast<ssize_t>(kLargeRead)) {
      fd_large_read_ended(fd, took_longer(call_ns_, bytes, kNewPagesBytesPerNs, end_ns));
    }
    if (took_longer(begin_ns_, bytes, kCopyBytesPerNs, end_ns) &&
        (data_fd(fd) != nullptr || t_state.samples_begun != 0))
      note(end_ns);
  }
  // For a call without a descriptor to read from, which has just ended.
  void done() const {
    if (begin_ns_ == 0) return;
    if (const uint64_t end_ns = sys::now_ns(); took_longer(begin_ns_, 0, 1, end_ns)) note(end_ns);
  }

 private:
  // A call counts as a wait if it took longer than this plus the time to copy its bytes from
  // memory.
  static constexpr uint64_t kShortestNs = 100'000;
  static constexpr uint64_t kCopyBytesPerNs = 3;
  // Into memory that was never touched before, as buffers of large reads are.
  static constexpr uint64_t kNewPagesBytesPerNs = 1;

  static bool took_longer(uint64_t begin_ns, ssize_t bytes, uint64_t bytes_per_ns,
                          uint64_t end_ns) {
    const uint64_t copied = bytes > 0 ? static_cast<uint64_t>(bytes) / bytes_per_ns : 0;
    return end_ns - begin_ns >= kShortestNs + copied;
  }
  void note(uint64_t end_ns) const {
    if (g_settings.off) return;
    const KeepErrno keep;
    note_wait(begin_ns_, end_ns);
  }

  uint64_t begin_ns_;
  uint64_t call_ns_ = begin_ns_;  // after what was to be read was requested
};

}  // namespace sluice::preload
