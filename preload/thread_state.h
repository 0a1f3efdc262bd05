// What the library remembers of a thread.
//
// Initial-exec and constant-initialised: the first access from a signal handler must neither
// allocate (as a dynamic TLS block would) nor run a constructor.
#pragma once

#include <csignal>
#include <cstdint>

namespace sluice::preload {

struct ThreadState {
  // The application believes that SIGSEGV is blocked here; the kernel's mask never has it.
  bool segv_blocked;
  // What segv_blocked was when the application's SIGSEGV handler was entered.
  bool outer_blocked;
  // An application's SIGSEGV handler without SA_NODEFER is running (or was left by a jump):
  // stack pointer at its start, 0 if none. Stale once the stack has grown back above it.
  uintptr_t handler_sp;
  bool handler_on_altstack;
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
  // Where records lie in followed mappings that it was handed since it began one: [begin, end).
  uint32_t touched_count;
  uintptr_t touched[8][2];
  // What the sample's begin told samples/pages.cc: a PageWatch.
  uint8_t page_watch;
  // A SIGSEGV sent by somebody while segv_blocked: delivered when it is unblocked.
  bool pending;
  siginfo_t pending_info;
};

extern __attribute__((tls_model("initial-exec"))) thread_local constinit ThreadState t_state;

}  // namespace sluice::preload
