// Whether a client shares the optimizer's namespaces. Only then do the pids, times and paths that
// it sends mean the same here.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

// False also if the process has ended, or cannot be examined.
bool shares_pid_namespace(uint32_t pid);
bool shares_time_namespace(uint32_t pid);
// Same root and mount namespace.
bool shares_paths(uint32_t pid);
// Whether the thread of that process may open what this process may, by what the kernel reports:
// same user, groups, effective capabilities and filters of system calls, and no_new_privs, without
// which Landlock needs a capability, is not set.
bool shares_rights(uint32_t pid, uint32_t thread);

enum class Life : uint8_t {
  kAlive,
  kEnded,    // also a zombie, which runs no more code
  kUnknown,  // no descriptor is left for a pidfd: not to be treated as ended
};
// REQUIRES: the pid of a process that lived in the optimizer's pid namespace. `pidfd`: unless null
// it receives a pidfd of a process that is alive; the caller owns it.
Life life_of(uint32_t pid, int* pidfd = nullptr);

}  // namespace sluice::optimizer
