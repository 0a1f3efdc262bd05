// What a framework says that its samples matter, and which of them its next epoch fetches
// (protocol/sluice.h). 0 or a negative errno. Any thread; not from a signal handler.
#pragma once

#include <cstdint>

namespace sluice::preload {

int report_importance(int dataset, const uint64_t* ids, const double* values, uint64_t count);
int select_samples(int dataset, uint32_t epoch, uint8_t* chosen, uint64_t samples);

}  // namespace sluice::preload
