// Mappings that the optimizer follows by polling the page table. Nothing is protected; the
// library only reports where they are, and when they are unmapped.
#pragma once

#include <cstdint>

namespace sluice::preload {

// What Sluice may do with a mapping's page-table entries. kStay: nothing. kShared: the mapping is
// shared and read-only, so entries may be zapped; the next touch restores them. kWatched: entries
// are zapped also to find out which pages a sample touches.
enum class Entries : uint8_t { kStay, kShared, kWatched };

// Registers a mapping of `file` and notifies the optimizer. Addresses are page-aligned.
void observe_mapping(uint32_t file, uint64_t offset, uintptr_t base, uintptr_t end,
                     Entries entries);

// Removes entries that overlap [begin, end): their mappings are unmapped or changed. One load where
// nothing is observed.
void forget_observed(uintptr_t begin, uintptr_t end);

// The file of an observed mapping that overlaps [begin, end) and, unless `offset` is null, the
// offset of `begin` in the file. False if there is no such mapping, or if it begins after `begin`
// and the offset is requested.
bool find_observed(uintptr_t begin, uintptr_t end, uint32_t* file, uint64_t* offset = nullptr);
// Zaps the page-table entries in [begin, end) of mappings that are kShared or kWatched. While this
// runs the mapping cannot be unmapped: an munmap() of the process waits.
void zap_observed(uintptr_t begin, uintptr_t end);
// A part of a watched mapping, of at most 64 MiB.
struct ObservedPart {
  uint32_t file;
  uint64_t offset;  // in the file, of `begin`
  uintptr_t begin, end;
};
// The position of a walk over all watched mappings. Begins at {}.
struct ObservedWalk {
  uint32_t index;
  uintptr_t at;
};
// Visits the next part and advances the walk; false at the end. While `visit` runs the mapping
// cannot be unmapped: an munmap() of the process waits. If `visit` returns false, the mapping
// becomes kStay.
bool visit_observed(ObservedWalk* walk, bool (*visit)(void* context, const ObservedPart& part),
                    void* context);
// Whether any mapping was ever observed. One load. Any thread.
bool any_observed();
// The application advised `advice` (as for madvise()) on [begin, end). Reports mappings that lie
// wholly in it again if that changes how the kernel reads them. One load where nothing is observed.
void advise_observed(uintptr_t begin, uintptr_t end, int advice);
// Changes the file id of observed mappings from `old` to `file`, and notifies the optimizer.
void renew_observed(uint32_t old, uint32_t file);

// Reports the mappings that a fork's child inherited. Async-signal-safe; single-threaded.
void observed_after_fork();

}  // namespace sluice::preload
