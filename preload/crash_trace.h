// SLUICE_CRASH_TRACE: a backtrace before a real crash is passed on.
#pragma once

namespace sluice::preload {

// Loads libunwind, if asked for by the settings. Constructor.
void prepare_crash_trace();

// Prints the calling thread's stack. Called when the process is about to die of SIGSEGV; nothing
// unless prepared. Not strictly async-signal-safe (libunwind may take locks), which is why it
// is an option.
void crash_trace();

}  // namespace sluice::preload
