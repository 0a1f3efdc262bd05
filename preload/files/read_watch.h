// How long a call that reads data took: session/waits.h.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/files/fds.h"
#include "preload/session/waits.h"

namespace sluice::preload {

// Times a call that reads. Of descriptors that read no data, and outside of samples, a look at the
// table is all. Trivially destructible: a cancelled thread unwinds through it.
class ReadWatch {
 public:
  explicit ReadWatch(int fd)
      : begin_ns_((data_fd(fd) != nullptr || t_state.samples_begun != 0) && !reads_for_others_now()
                      ? sys::now_ns()
                      : 0) {}
  // Within samples: a call that reads no bytes, but may wait.
  ReadWatch()
      : begin_ns_(t_state.samples_begun != 0 && !reads_for_others_now() ? sys::now_ns() : 0) {}

  // The call is over; for done().
  uint64_t end_ns() const { return begin_ns_ != 0 ? sys::now_ns() : 0; }
  // It has read so many bytes (or failed) by then. What turned out to be no data is no wait for it.
  // errno is kept.
  void done(int fd, ssize_t bytes, uint64_t end_ns) const {
    if (begin_ns_ != 0 && (data_fd(fd) != nullptr || t_state.samples_begun != 0)) {
      judge(begin_ns_, bytes, end_ns);
    }
  }
  // Of a call without a descriptor to read from, which has just ended.
  void done() const {
    if (begin_ns_ != 0) judge(begin_ns_, 0, sys::now_ns());
  }

 private:
  static void judge(uint64_t begin_ns, ssize_t bytes, uint64_t end_ns);

  uint64_t begin_ns_;
};

}  // namespace sluice::preload
