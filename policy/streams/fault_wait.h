// How long a process waited for pages of mappings that are only observed.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::policy {

// A thread's counters since it began.
struct ThreadTime {
  uint32_t tid = 0;
  uint64_t faults = 0;   // major and minor
  uint64_t busy_ns = 0;  // it ran, or was ready to run and waited for a processor
};

// Of `took_ns` between two readings of a process's threads: the time for which the thread with the
// most faults in it was neither running nor ready to run. 0 if none had a fault.
uint64_t fault_wait_ns(std::span<const ThreadTime> before, std::span<const ThreadTime> after,
                       uint64_t took_ns);

}  // namespace sluice::policy
