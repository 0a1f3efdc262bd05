// Which process a pid denotes, and which clock it sees. Async-signal-safe; errno is preserved.
#pragma once

#include <cstdint>

namespace sluice::preload {

// When the process began, in clock ticks since boot: with the pid this identifies a process even
// after the pid is reused. 0: unknown, or no such process.
uint64_t process_began(int pid);

// The inode of the calling process's time namespace; 0: unknown.
uint64_t time_namespace();

}  // namespace sluice::preload
