// Mappings that the optimizer follows by polling the page table. Nothing is protected; the
// library only says where they are, and when they are gone.
#pragma once

#include <cstdint>

namespace sluice::preload {

// Remembers a mapping of `file` and tells the optimizer. Addresses are page-aligned. `clearable`:
// its page-table entries may be taken away, they come back with the next touch.
void observe_mapping(uint32_t file, uint64_t offset, uintptr_t base, uintptr_t end, bool clearable);

// Whatever overlaps [begin, end) is gone or has changed. One load where nothing is observed.
void forget_observed(uintptr_t begin, uintptr_t end);

// The file of an observed mapping that overlaps [begin, end), and, if asked for, where in it
// `begin` lies; false if there is none, or it begins later and the offset was asked for.
bool find_observed(uintptr_t begin, uintptr_t end, uint32_t* file, uint64_t* offset = nullptr);
// A part of a clearable mapping, of at most 64 MiB.
struct ObservedPart {
  uint32_t file;
  uint64_t offset;  // in the file, of `begin`
  uintptr_t begin, end;
};
// Where a walk over all of them is. Begins at {}.
struct ObservedWalk {
  uint32_t index;
  uintptr_t at;
};
// Visits the next part and moves on; false at the end. While `visit` runs the mapping stays: an
// munmap() of the process waits. A mapping of which `visit` says false is not clearable after all.
bool visit_observed(ObservedWalk* walk, bool (*visit)(void* context, const ObservedPart& part),
                    void* context);
// Whether there is any mapping to visit. One load. Any thread.
bool any_observed();
// What was observed under the id `old` is so under `file` from now on.
void renew_observed(uint32_t old, uint32_t file);

// Tells the optimizer what a fork's child inherited. Async-signal-safe; single-threaded.
void observed_after_fork();

}  // namespace sluice::preload
