// Files that this process may change without an inotify event: inotify reports write(), but not
// stores to a shared mapping. So the process uses no copy of a file that it opened for writing, and
// while a session lives that mapped a file writable, the optimizer stages it for no process.
#pragma once

#include <cstdint>

#include "protocol/stage.h"

namespace sluice::preload {

// Whether this process, or one that it was forked from, may have written the file. False positives
// are possible; then the original is read. Async-signal-safe.
bool maybe_written(uint64_t device, uint64_t inode);
void note_written(uint64_t device, uint64_t inode);

// Makes the optimizer drop the copies of the file and process all earlier changes on this host;
// returns once that is done, or the optimizer is stopped or dead. Also in a process that uses no
// copies itself, since others may; an optimizer is not started for it. `mapped`: the optimizer does
// not stage the file while the session lives. Blocks; not from a signal handler.
void settle(uint64_t device, uint64_t inode, bool mapped);

// The caller opened `fd` for writing.
void opened_for_writing(int fd);
// The caller mapped `fd` MAP_SHARED. Without effect if it is not open for reading and writing.
// Returns before the first store to the mapping. errno is preserved.
void mapped_shared(int fd);
// A stage is in use from now on: reports the files that were mapped before.
void report_mapped();

}  // namespace sluice::preload
