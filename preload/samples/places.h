// Where samples are: what the job says of it, and which files its workers are seen to open. Any
// thread, not from a signal handler.
#pragma once

#include <cstdint>

namespace sluice::preload {

// sluice_locate_files: 0 or a negative errno.
int locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count);

// The calling thread opened `path` for reading, as `fd`, while it reads a sample. Collected, and
// told now and then. errno is kept.
void file_seen(int fd, int folder, const char* path);
// Tells what was collected, if that was long ago or `now` is set. errno is kept.
void tell_seen(bool now);
// In a fork's child: what was collected is its parent's to tell.
void places_after_fork();

}  // namespace sluice::preload
