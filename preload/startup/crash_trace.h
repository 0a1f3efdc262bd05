// SLUICE_CRASH_TRACE: prints a backtrace before a crash that Sluice did not cause is forwarded.
#pragma once

namespace sluice::preload {

// Loads libunwind, if the settings ask for it, and makes the fault handler print the thread's stack
// before a crash. Not strictly async-signal-safe (libunwind and dladdr may take locks), which is
// why it is an option. Constructor only.
void prepare_crash_trace();

}  // namespace sluice::preload
