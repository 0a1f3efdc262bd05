// Which sample a thread is reading, and its parts. Between sluice_begin() and sluice_end(), ranges
// of followed files that the thread reads, or that LMDB returns, are reported as parts of the
// sample.
//
// current_sample() and t_state are read in the fault handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/base/thread_state.h"

namespace sluice::preload {

// protocol::sample_key of the one sample that this thread has begun; 0 if there is none, or if
// there are several, since their reads cannot be distinguished. Async-signal-safe.
inline uint64_t current_sample() { return t_state.samples_begun == 1 ? t_state.sample : 0; }

// [offset, offset + length) of a followed file was read for the current sample, if there is one.
void sample_part(uint32_t file, uint64_t offset, uint64_t length);

// The same by address, for memory that lies in a followed mapping. Not from a signal handler.
void sample_memory(const void* address, size_t length);

// The thread's sample is about to end: zaps the mapped records that LMDB returned for it, if the
// optimizer bounds their memory. Not from a signal handler.
void release_sample_memory();

}  // namespace sluice::preload
