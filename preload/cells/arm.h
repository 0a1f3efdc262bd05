// Arms a mapping with checkpoints, and disarms it. Not from a signal handler; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// Decides on a new mapping before mmap() returns it to the caller. Arms or observes it if it is
// data; counts (and reports) why, if it is data and neither is possible. errno is preserved.
void consider_mapping(void* address, size_t length, int prot, int flags, int fd, off_t offset);

// Before the application changes [address, address + length): mappings that overlap it are opened
// for good and removed from the registry. Two loads where there are none. errno is preserved.
void disarm(const void* address, size_t length);

// The application advised on [address, address + length) how it is read: MADV_NORMAL, MADV_RANDOM
// or MADV_SEQUENTIAL. Notifies the optimizer, since the cost of a fault there depends on it. errno
// is preserved.
void note_advice(const void* address, size_t length, int advice);

// For an address range that the kernel has just allocated: an entry that overlaps it is stale, its
// mapping was unmapped by a call that no hook saw. Removes such entries and opens nothing.
void forget_stale(const void* address, size_t length);

// Disarms all mappings. True if there were any: the caller's failed call may succeed now.
bool disarm_all();

// The process loads code that calls libc without passing any hook: opens every mapping; later
// mappings are observed. True the first time.
bool checkpoints_end();

// mlockall(MCL_FUTURE): locked mappings cannot be protected, so no more mappings are armed.
void set_future_locked(bool locked);

}  // namespace sluice::preload
