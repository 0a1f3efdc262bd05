// The kernel's interface to a process's page table, /proc/PID/pagemap: entries that are read, and
// the PAGEMAP_SCAN request of Linux 6.7. Debian 12's linux/fs.h is older than the request.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace sluice::protocol {
inline constexpr uint64_t kEntryPresent = 1ULL << 63;  // in an entry that was read
inline constexpr uint64_t kEntryFile = 1ULL << 61;     // a file's page, or shared memory

struct PageRegion {
  uint64_t start, end, categories;
};
struct PagemapScan {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
static_assert(sizeof(PagemapScan) == 96);
inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
inline constexpr uint64_t kPageIsFile = 1 << 2;  // categories
inline constexpr uint64_t kPageIsPresent = 1 << 3;

}  // namespace sluice::protocol
