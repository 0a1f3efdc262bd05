// SLUICE_CALLSITES: counts cells and bytes by the code that touched them first.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// Records the pc and up to eight return addresses found by frame pointers. Runs in the fault
// handler, only if the option is on: makes one system call a frame, because a frame pointer may be
// any value. Async-signal-safe.
void record_callsite(const ucontext_t* context, uint64_t bytes);

inline constexpr size_t kCallsiteDepth = 8;
struct CallsiteCount {
  uintptr_t pc = 0;
  uint64_t bytes = 0, times = 0;
  const uintptr_t* callers = nullptr;  // kCallsiteDepth of them, 0 after the last
};
// The call sites with the most bytes first, at most `room`; returns how many. Any thread.
size_t most_read_callsites(CallsiteCount* out, size_t room);

}  // namespace sluice::preload
