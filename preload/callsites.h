// SLUICE_CALLSITES: which code touched the data first.
#pragma once

#include <ucontext.h>

#include <cstdint>

namespace sluice::preload {

// Records the pc and up to eight return addresses found by frame pointers. Runs in the fault
// handler, only if the option is on: one system call a frame, because a frame pointer may be
// anything. Async-signal-safe.
void record_callsite(const ucontext_t* context, uint64_t bytes);

// Names and prints the places by bytes. At the end of the process.
void report_callsites();

}  // namespace sluice::preload
