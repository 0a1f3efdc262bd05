// Datasets and orders, as the functions of protocol/sluice.h tell of them. Any thread, not from a
// signal handler; waits for the optimizer within the process's patience (session/client.h).
#pragma once

#include <cstdint>

namespace sluice::preload {

// The dataset's number, > 0, or a negative errno.
int declare_dataset(const char* name, uint64_t samples);

// 0 or a negative errno.
int publish_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                  uint64_t count, bool whole);

// In a fork's child; single-threaded, async-signal-safe.
void datasets_after_fork();

}  // namespace sluice::preload
