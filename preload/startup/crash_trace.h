// SLUICE_CRASH_TRACE: a backtrace before a real crash is passed on.
#pragma once

namespace sluice::preload {

// Loads libunwind, if the settings ask for it, and has the fault handler print the thread's stack
// before a crash. Not strictly async-signal-safe (libunwind and dladdr may take locks), which is
// why it is an option. Constructor.
void prepare_crash_trace();

}  // namespace sluice::preload
