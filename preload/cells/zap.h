// Zaps page-table entries of pages that were read, so that these can be evicted from the page
// cache: the kernel evicts no page that a process maps. The next touch maps the page again.
#pragma once

#include <cstdint>

namespace sluice::preload {

// Zaps [begin, end), rounded outward to 64 KiB, in followed, shared mappings: a touch also maps all
// cached pages within the same 64 KiB (fault-around). Not from a signal handler; an munmap() of the
// process waits meanwhile. One load or two where nothing is mapped.
void zap_mapped(uintptr_t begin, uintptr_t end);

}  // namespace sluice::preload
