// Where samples are within a file, as declared by the job (protocol/sluice.h). Any thread, not from
// a signal handler; opens the file once, as the job itself is about to.
#pragma once

#include <cstdint>

namespace sluice::preload {

// 0 or a negative errno.
int locate_extents(int dataset, uint64_t first, const char* path, const uint64_t* offsets,
                   const uint32_t* lengths, uint64_t count);
int locate_keys(int dataset, uint64_t first, const char* path, const void* keys,
                const uint32_t* lengths, uint64_t count);

}  // namespace sluice::preload
