// What this process may write without a report: inotify tells of write(), but not of stores to a
// shared mapping. So it takes no copy itself of a file that it opened for writing, and has the
// optimizer stage none, for any process, while a session lives that mapped the file so.
#pragma once

#include <cstdint>

#include "protocol/stage.h"

namespace sluice::preload {

// This process may have written the file, or one did that it was forked from. May be true of a file
// that none wrote, of which the original is read then. Async-signal-safe.
bool maybe_written(uint64_t device, uint64_t inode);
void note_written(uint64_t device, uint64_t inode);

// Has the optimizer drop the copies of the file and deal with all that changed on this host before;
// returns once it has, or is stopped or gone. `mapped`: it stages the file no more while the
// session lives. Blocks; not from a signal handler.
void settle(const protocol::Stage& stage, uint64_t device, uint64_t inode, bool mapped);

// The caller opened `fd` for writing.
void opened_for_writing(int fd);
// The caller mapped `fd` MAP_SHARED. Without effect if it is not open for reading and writing. No
// store to the mapping is before this returns. errno is kept.
void mapped_shared(int fd);
// A stage is in use from now on: tells of what was mapped before.
void tell_mapped();

}  // namespace sluice::preload
