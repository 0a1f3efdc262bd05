// Which sample a thread is reading, and what belongs to it. Between sluice_begin() and sluice_end()
// what the thread reads of followed files, or is handed by LMDB, is told as part of the sample.
//
// current_sample() and t_state are read in the fault handler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/base/thread_state.h"

namespace sluice::preload {

// protocol::sample_key of the one sample that this thread has begun; 0 if there is none, or more
// than one, whose reads cannot be told apart. Async-signal-safe.
inline uint64_t current_sample() { return t_state.samples_begun == 1 ? t_state.sample : 0; }

// [offset, offset + length) of a followed file was read for the current sample, if there is one.
void sample_part(uint32_t file, uint64_t offset, uint64_t length);

// The same by address, for memory that lies in a followed mapping. Not from a signal handler.
void sample_memory(const void* address, size_t length);

// The thread's sample is about to end: mapped records that it was handed leave the page table, if
// the optimizer bounds what they take. Not from a signal handler.
void release_sample_memory();

}  // namespace sluice::preload
