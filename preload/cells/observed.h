// Mappings that the optimizer follows by polling the page table. Nothing is protected; the
// library only says where they are, and when they are gone.
#pragma once

#include <cstdint>

namespace sluice::preload {

// What may be done to a mapping's page-table entries. kShared: it is shared and not written: they
// may be taken away, and come back with the next touch. kWatched: and that is how is found out
// which pages a sample touches.
enum class Entries : uint8_t { kStay, kShared, kWatched };

// Remembers a mapping of `file` and tells the optimizer. Addresses are page-aligned.
void observe_mapping(uint32_t file, uint64_t offset, uintptr_t base, uintptr_t end,
                     Entries entries);

// Whatever overlaps [begin, end) is gone or has changed. One load where nothing is observed.
void forget_observed(uintptr_t begin, uintptr_t end);

// The file of an observed mapping that overlaps [begin, end), and, if asked for, where in it
// `begin` lies; false if there is none, or it begins later and the offset was asked for.
bool find_observed(uintptr_t begin, uintptr_t end, uint32_t* file, uint64_t* offset = nullptr);
// Takes away the entries of what lies in [begin, end) of mappings that are at least kShared. While
// it runs the mapping stays: an munmap() of the process waits.
void zap_observed(uintptr_t begin, uintptr_t end);
// A part of a watched mapping, of at most 64 MiB.
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
// munmap() of the process waits. A mapping of which `visit` says false stays as it is from then on.
bool visit_observed(ObservedWalk* walk, bool (*visit)(void* context, const ObservedPart& part),
                    void* context);
// Whether there is any mapping to visit. One load. Any thread.
bool any_observed();
// The application advised on [begin, end), as madvise() has it; mappings that lie in it whole are
// told again if that changes how the kernel reads them. One load where nothing is observed.
void advise_observed(uintptr_t begin, uintptr_t end, int advice);
// What was observed under the id `old` is so under `file` from now on.
void renew_observed(uint32_t old, uint32_t file);

// Tells the optimizer what a fork's child inherited. Async-signal-safe; single-threaded.
void observed_after_fork();

}  // namespace sluice::preload
