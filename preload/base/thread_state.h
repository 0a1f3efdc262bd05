// What the library remembers of a thread.
//
// Initial-exec and constant-initialised: the first access from a signal handler must neither
// allocate (as a dynamic TLS block would) nor run a constructor.
#pragma once

#include <cstdint>

namespace sluice::preload {

struct StagedFd;

// What a thread's counters said when it last tripped a checkpoint: CLOCK_MONOTONIC (0: not yet),
// its time on a processor, its page faults that went to storage.
struct FaultMark {
  uint64_t time_ns, ran_ns, faults;
};

struct ThreadState {
  // The last fault that looked like a race with another thread's opening; see fault_inside.cc.
  uintptr_t retry_address;
  uint64_t retry_word;
  uint32_t seen_disarms;
  // The kernel's id of the thread, asked for when it began its first sample; 0: not yet. A system
  // call for each event would be a good part of what an event costs.
  uint32_t sample_tid;
  // Samples that the thread has begun and not ended, and the key of the last of them.
  uint32_t samples_begun;
  uint64_t sample;
  // Windows on samples that are open: in them the thread may be given staged copies
  // (stage/window.h).
  uint32_t windows;
  // Staged copies that the thread was given, and those that it gave back for the originals, since
  // it ended its last sample.
  uint32_t copies_given, copies_left;
  // In this window the paths of this thread were found to lead where the optimizer's do
  // (stage/identity.cc); 0: not yet.
  uint64_t place_known;
  // The staged descriptor that the thread is using, for whoever changes it over in a signal handler
  // that interrupted the use; nullptr: none.
  StagedFd* staged_use;
  // Where records lie in followed mappings that it was handed since it began one: [begin, end).
  uint32_t touched_count;
  uintptr_t touched[8][2];
  // What the sample's begin told samples/pages.cc: a PageWatch.
  uint8_t page_watch;
  FaultMark faults;
  // It may be a vfork's child that runs: process.h.
  bool vforked;
  // A SIGSEGV that was sent to this thread while blocked waits as a shadow (signals/mask.h).
  bool segv_held;
};

extern __attribute__((tls_model("initial-exec"))) thread_local constinit ThreadState t_state;

}  // namespace sluice::preload
