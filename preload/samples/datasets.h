// Datasets and orders, passed to the functions of protocol/sluice.h. Any thread, not from a signal
// handler; waits for the optimizer within the process's patience (session/client.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// The dataset's number, > 0, or a negative errno.
int declare_dataset(const char* name, uint64_t samples);

// Copies the name of the dataset that the optimizer knows as `id`, truncated to `size`; leaves
// `out` unchanged if this process has declared no such dataset.
void dataset_name(uint32_t id, char* out, size_t size);

// 0 or a negative errno.
int publish_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                  uint64_t count, bool whole);

// In a fork's child; single-threaded, async-signal-safe.
void datasets_after_fork();

}  // namespace sluice::preload
