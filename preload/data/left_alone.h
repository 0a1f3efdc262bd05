// The files that a job reads and that nothing is done for, by kind: what the end-of-run line says
// where Sluice did not help. A small fixed table; a name's ending is the kind.
//
// Any thread; async-signal-safe. Shared with fork children from the first fork on.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// A file is read, and is not followed, or not yet. Returns its kind's number, to be handed to
// left_alone_read(). 0: not counted, as those of the system, of programs and their parts, and small
// ones. The kernel is asked for its name the first time.
uint32_t left_alone_opened(int fd, const struct stat& about);
void left_alone_read(uint32_t kind, uint64_t bytes);

// A file that SLUICE_DATASET names was opened.
void dataset_matched();

// Bytes that were read of such files.
uint64_t left_alone_bytes();

// "24 .tar files of 24 MB: smaller than 256 MiB; SLUICE_DATASET=DIR takes them", and what else
// there was; empty if nothing was counted. Not from a signal handler.
void left_alone_text(char* out, size_t size);
// Whether SLUICE_DATASET is given and named nothing that was opened.
bool dataset_unmatched();

size_t left_alone_size();
// Before a fork, once: zeroed memory of left_alone_size() bytes that stays mapped in both.
void share_left_alone(void* shared);

}  // namespace sluice::preload
