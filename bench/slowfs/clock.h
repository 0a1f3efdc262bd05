#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::slowfs {

// CLOCK_MONOTONIC in ns.
inline uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace sluice::slowfs
