// How long a process's threads ran, and how many faults they had, from /proc.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/streams/fault_wait.h"

namespace sluice::optimizer {

// Of the first 64 threads of a process; empty if it is gone, or if this kernel does not account
// threads. Two small reads a thread.
std::vector<policy::ThreadTime> thread_times(uint32_t pid);

}  // namespace sluice::optimizer
