// Takes what was read out of the page table, so that the page cache behind it can be dropped: the
// kernel drops no page that somebody maps. The next touch maps it again.
#pragma once

#include <cstdint>

namespace sluice::preload {

// What lies in followed, shared mappings of [begin, end), and of what a touch there maps besides:
// everything within the same 64 KiB that is cached. Not from a signal handler; no munmap() of the
// process can be under way meanwhile. One load or two where nothing is mapped.
void zap_mapped(uintptr_t begin, uintptr_t end);

}  // namespace sluice::preload
