// The importance that a framework reports of its samples, and the selection of samples for its next
// epoch (protocol/sluice.h). 0 or a negative errno. Any thread; not from a signal handler.
#pragma once

#include <cstdint>

namespace sluice::preload {

// The optimizer treats all processes with the same name as ranks of one job; nullptr: not a rank.
// Never waits.
void become_rank_of(const char* name);
// Sets the job's seed for selections.
void select_by_seed(uint64_t seed);

// `labels` may be null.
int report_importance(int dataset, const uint64_t* ids, const double* values,
                      const uint32_t* labels, uint64_t count);
int select_samples(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples);
int serve_samples(int dataset, uint32_t epoch, uint64_t first, uint64_t* samples, uint8_t* how,
                  uint64_t count);

}  // namespace sluice::preload
