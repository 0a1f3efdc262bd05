// What a process that asks us sees of the machine: numbers of processes, times and paths that it
// names mean the same to us only in the same namespaces.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

// False as well if the process is gone, or cannot be looked at.
bool shares_pid_namespace(uint32_t pid);
bool shares_time_namespace(uint32_t pid);
// Its paths begin at our root, in our mount namespace.
bool shares_paths(uint32_t pid);

enum class Life : uint8_t {
  kAlive,
  kEnded,    // a zombie too: nothing of it will come any more
  kUnknown,  // no descriptor is left to look with: it is not to be taken for dead
};
// REQUIRES: the pid of a process that lived in our pid namespace. `pidfd`: if not null it gets a
// descriptor for a process that is alive; the caller's.
Life look_for(uint32_t pid, int* pidfd = nullptr);

}  // namespace sluice::optimizer
