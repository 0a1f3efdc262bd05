// Putting checkpoints on a mapping, and taking them off. Outside the handler; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// Looks at a mapping that was just made, before its maker knows where it is. Arms it or has it
// observed if it is data; says and counts why if it is data and cannot be. errno is kept.
void consider_mapping(void* address, size_t length, int prot, int flags, int fd, off_t offset);

// Before the application changes [address, address + length): mappings that it touches are
// opened for good and forgotten. A look at two words where there are none. errno is kept.
void disarm(const void* address, size_t length);

// The application advised on [address, address + length) how it is read: MADV_NORMAL, MADV_RANDOM
// or MADV_SEQUENTIAL. The optimizer is told what a fault there costs. errno is kept.
void note_advice(const void* address, size_t length, int advice);

// For an address range that the kernel has just given out: whatever was known of it is stale,
// since it was unmapped behind our back. Nothing is opened.
void forget_stale(const void* address, size_t length);

// All of them. True if there were any: the caller's failed call may succeed now.
bool disarm_all();

// Something that no hook sees has entered the process: every mapping is opened, later ones are
// observed. True the first time.
bool checkpoints_end();

// mlockall(MCL_FUTURE): protecting fails on locked mappings, so nothing more is armed.
void set_future_locked(bool locked);

}  // namespace sluice::preload
