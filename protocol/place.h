// Where the optimizer of this user, memory cgroup and mount namespace listens. Pure text: job and
// optimizer read the inputs by their own means and derive the same name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::protocol {

// The part of /proc/self/cgroup that names the memory cgroup: the v1 line whose controllers
// include "memory", else the v2 line "0::". FNV-1a hash of its path; 0 if there is neither.
// `text` is the whole file, NUL-terminated.
uint64_t memory_cgroup_hash(const char* text);

// Writes the folder ("/tmp/sluice-1000") that must be a real folder, owned by `uid`, mode 0700.
// Both functions return false if `size` is too small.
bool socket_folder(char* out, size_t size, uint32_t uid);

// Writes the socket's path: FOLDER/v1-<mount namespace inode>-<cgroup hash>.sock. The lock file
// beside it has ".lock" for ".sock".
bool socket_path(char* out, size_t size, uint32_t uid, uint64_t mount_namespace,
                 uint64_t cgroup_hash);

}  // namespace sluice::protocol
