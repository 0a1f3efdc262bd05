// How long the job waited for data, on the wall clock.
//
// Three sources, of which overlapping times count once over all threads of the process and of its
// fork children: what a training loop says of itself (sluice_waited), calls that read data and took
// longer than a copy from memory does, and page faults between two trips of a thread. Everything is
// measured after the fact, so a thread that is cancelled or jumps out of a call leaves nothing
// behind. The sum is ClientMetric::waited_ns.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "preload/fds.h"
#include "preload/sys.h"
#include "preload/thread_state.h"

namespace sluice::preload {

// The calling thread waited for data in [begin_ns, end_ns), CLOCK_MONOTONIC. Async-signal-safe.
void note_wait(uint64_t begin_ns, uint64_t end_ns);

// A loader's loop has waited for `ns` up to now. Any thread.
void loop_waited(uint64_t ns);

// What this process and its fork children read from now on is nobody's wait: they are workers of a
// loop that says itself how long it waited. Any thread.
void reads_for_others();
bool reads_for_others_now();

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

// The calling thread has tripped a checkpoint, or is about to end: if it had page faults that went
// to storage since its last trip, the time that it was off the processor since then was waited.
// Async-signal-safe.
void note_faults();
// In a fork's child: the thread's counters begin again.
void waits_after_fork();
// Before a fork: from now on waits are counted together with those of children. `shared` is zeroed
// memory of waits_size() bytes that stays mapped in both.
void share_waits(void* shared);
size_t waits_size();

}  // namespace sluice::preload
