// Where samples are: as declared by the job, or learned from the files that its workers open. Any
// thread, not from a signal handler.
#pragma once

#include <cstdint>

namespace sluice::preload {

// sluice_locate_parts: 0 or a negative errno.
int locate_files(int dataset, uint64_t first, const char* const* paths, uint64_t count,
                 uint32_t each);

// Where samples are within a file; opens the file once, as the job itself is about to. 0 or a
// negative errno.
int locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                   const uint32_t* lengths, uint64_t count);
int locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                const uint32_t* lengths, uint64_t count);

// The calling thread opened `path` for reading, as `fd`. Collected, and sent to the optimizer in
// batches, if the thread reads a sample or its opens are watched. errno is preserved.
void file_seen(int fd, int folder, const char* path);
// Sends the collected files, if the batch is old enough or `now` is set. errno is preserved.
void send_seen_files(bool now);
// In a fork's child: drops the collected files, which the parent sends.
void places_after_fork();

}  // namespace sluice::preload
