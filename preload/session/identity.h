// Whose a process's number is, and what its clock shows. Async-signal-safe; errno is left alone.
#pragma once

#include <cstdint>

namespace sluice::preload {

// When the process began, in clock ticks since boot: with its number this names it for good. 0: not
// known, or there is none.
uint64_t process_began(int pid);

// The time namespace of the calling process, a number; 0: not known. Reads no clock.
uint64_t time_namespace();

}  // namespace sluice::preload
