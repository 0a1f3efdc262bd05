// How much of a file is in the page cache.
#pragma once

#include <cstdint>

namespace sluice::cli {

// By cachestat(2). Returns false, with errno, if the kernel has none (before Linux 6.5).
bool cachestat_pages(int file, uint64_t offset, uint64_t length, uint64_t* pages);

// By cachestat, else by mincore on a mapping of its own. Returns false if neither is informative:
// mincore reports every page as resident of files that this user neither owns nor may write.
bool resident_pages(int file, uint64_t length, uint64_t* pages);

}  // namespace sluice::cli
