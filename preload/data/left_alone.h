// The files that a job reads and that Sluice does not prefetch, by kind: the end-of-run line
// reports them if Sluice did not help. A small fixed table; the kind is the file name's ending.
//
// Any thread; async-signal-safe. Shared with fork children from the first fork on.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// A file is read and is not followed, or not yet. Returns its kind's number, for left_alone_read().
// 0: not counted, because it is small or belongs to the system or to a program. The first call for
// a file asks the kernel for its name.
uint32_t left_alone_opened(int fd, const struct stat& about);
void left_alone_read(uint32_t kind, uint64_t bytes);

// A file that SLUICE_DATASET names was opened.
void dataset_matched();

// Bytes that were read from such files.
uint64_t left_alone_bytes();

// "24 .tar files of 24 MB: smaller than 256 MiB; SLUICE_DATASET=DIR takes them", for the two kinds
// with the most bytes read; empty if nothing was counted. Not from a signal handler.
void left_alone_text(char* out, size_t size);
// Whether SLUICE_DATASET is given and named no file that was opened.
bool dataset_unmatched();

size_t left_alone_size();
// Before a fork, once: zeroed memory of left_alone_size() bytes that stays mapped in both.
void share_left_alone(void* shared);

}  // namespace sluice::preload
