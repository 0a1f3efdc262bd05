// Mappings that the optimizer follows by polling the page table. Nothing is protected; the
// library only says where they are, and when they are gone.
#pragma once

#include <cstdint>

namespace sluice::preload {

// Remembers a mapping of `file` and tells the optimizer. Addresses are page-aligned.
void observe_mapping(uint32_t file, uint64_t offset, uintptr_t base, uintptr_t end);

// Whatever overlaps [begin, end) is gone or has changed. One load where nothing is observed.
void forget_observed(uintptr_t begin, uintptr_t end);

// The file of an observed mapping that overlaps [begin, end), and, if asked for, where in it
// `begin` lies; false if there is none, or it begins later and the offset was asked for.
bool find_observed(uintptr_t begin, uintptr_t end, uint32_t* file, uint64_t* offset = nullptr);
// What was observed under the id `old` is so under `file` from now on.
void renew_observed(uint32_t old, uint32_t file);

// Tells the optimizer what a fork's child inherited. Async-signal-safe; single-threaded.
void observed_after_fork();

}  // namespace sluice::preload
