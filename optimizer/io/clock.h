// CLOCK_MONOTONIC in nanoseconds: the clock of events (protocol/ring.h). Policy code takes the
// time as an argument and does not include this file.
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::optimizer {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;

inline uint64_t read_clock(clockid_t clock) {
  timespec at{};
  clock_gettime(clock, &at);
  return static_cast<uint64_t>(at.tv_sec) * kSecond + static_cast<uint64_t>(at.tv_nsec);
}

inline uint64_t now_ns() { return read_clock(CLOCK_MONOTONIC); }
// What the calling thread has used of a processor.
inline uint64_t thread_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace sluice::optimizer
