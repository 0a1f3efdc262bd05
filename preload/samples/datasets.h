// Datasets and orders, passed to the functions of protocol/sluice.h. Any thread, not from a signal
// handler; waits for the optimizer within the process's patience (session/client.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// The dataset's number, > 0, or a negative errno.
int declare_dataset(const char* name, uint64_t samples);

// sluice_located: percent, or a negative errno.
int located(int dataset);

// Copies the name of the dataset that the optimizer knows as `id`, truncated to `size`; leaves
// `out` unchanged if this process has declared no such dataset.
void dataset_name(uint32_t id, char* out, size_t size);

// As sluice_order(). 0 or a negative errno.
int publish_order(int dataset, uint32_t epoch, uint64_t first, const uint64_t* indices,
                  uint64_t count, uint32_t flags);

// The importance that a framework reports of its samples, and the selection of samples for its next
// epoch. 0 or a negative errno.
// The optimizer treats all processes with the same name as ranks of one job; nullptr: not a rank.
// Never waits.
void become_rank_of(const char* name);
// As sluice_rank(), whose arguments are valid. Never waits.
void become_rank(uint32_t rank, uint16_t ranks, uint16_t on_host);
// Sets the job's seed for selections.
void select_by_seed(uint64_t seed);

// `labels` may be null.
int report_importance(int dataset, const uint64_t* ids, const double* values,
                      const uint32_t* labels, uint64_t count);
int select_samples(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples);
int serve_samples(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
                  uint64_t count);

// In a fork's child; single-threaded, async-signal-safe.
void datasets_after_fork();

}  // namespace sluice::preload
