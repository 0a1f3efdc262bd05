// The library's state of a thread.
//
// Initial-exec and constant-initialised: the first access from a signal handler must neither
// allocate (as a dynamic TLS block would) nor run a constructor.
#pragma once

#include <cstdint>

namespace sluice::preload {

struct StagedFd;

// A thread's counters when it last tripped a checkpoint: CLOCK_MONOTONIC (0: not yet), its CPU
// time, its major page faults.
struct FaultMark {
  uint64_t time_ns, ran_ns, faults;
};

struct ThreadState {
  // The last fault that looked like a race with another thread's opening; see fault_inside.cc.
  uintptr_t retry_address;
  uint64_t retry_word;
  uint32_t seen_disarms;
  // The kernel's id of the thread, read when it began its first window; 0: not yet. A system call
  // for each event would be a good part of an event's cost.
  uint32_t sample_tid;
  // Samples that the thread has begun and not ended, and the key of the last of them.
  uint32_t samples_begun;
  uint64_t sample;
  // Number of open windows: within one the thread may be given staged copies (stage/window.h).
  uint32_t windows;
  // Since the thread ended its last sample: staged copies that it was given, and copies that were
  // switched to the originals.
  uint32_t copies_given, copies_left;
  // The copy that it was given last, by its inode, and how often in a row without a switch.
  uint64_t last_copy;
  uint32_t last_copy_given;
  // The state of g_changes in which this thread's paths were found to lead where the optimizer's
  // do, in this window (stage/identity.cc); 0: not yet.
  uint64_t place_known;
  // The staged descriptor that the thread is using, for a signal handler that interrupts the use
  // and switches the descriptor; nullptr: none.
  StagedFd* staged_use;
  // Records in followed mappings that LMDB returned since the thread began a sample: [begin, end).
  uint32_t touched_count;
  uintptr_t touched[8][2];
  // The names of files that the thread opens are collected (samples/opens.h).
  bool watches_opens;
  // The state of samples/pages.cc for the sample: a PageWatch.
  uint8_t page_watch;
  // The folder stream that the thread opened last and has not read from, and how long it took to
  // open it (data/folders.h).
  const void* folder;
  uint64_t folder_ns;
  FaultMark faults;
  // A vfork child may be running in this thread: process.h.
  bool vforked;
  // A SIGSEGV that was sent to this thread while blocked is pending as a shadow (handler/mask.h).
  bool segv_held;
};

extern __attribute__((tls_model("initial-exec"))) thread_local constinit ThreadState t_state;

}  // namespace sluice::preload
