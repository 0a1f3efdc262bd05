// CLOCK_MONOTONIC in nanoseconds: the clock of events (protocol/ring.h). Policy code takes the
// time as an argument and does not include this file.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::optimizer {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;

inline uint64_t now_ns() {
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  return static_cast<uint64_t>(at.tv_sec) * kSecond + static_cast<uint64_t>(at.tv_nsec);
}

}  // namespace sluice::optimizer
