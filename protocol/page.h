// The page of x86-64, on which this project runs: of memory, of the page cache, of
// /proc/PID/pagemap.
#pragma once

#include <cstdint>

namespace sluice {

inline constexpr uint64_t kPage = 4096;  // bytes

}  // namespace sluice
