// The identity with which a staged copy may be read: the credentials and the name spaces that
// decide which file a path leads to and whether it may be read. A copy was made with the
// optimizer's identity; a thread with any other identity gets the original, so that the kernel
// decides.
//
// Not covered: labels of security modules, and rules of Landlock (which refuse the folder of the
// copies as well unless it was allowed).
#pragma once

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>

namespace sluice::protocol {

struct AccessIdentity {
  uint64_t root_device, root_inode;  // `/`
  uint64_t mounts, users;            // inodes of the mount and the user name space
  uint64_t groups;                   // hash of the supplementary groups, in the kernel's order
  uint64_t capabilities;             // effective
  uint32_t user, group;              // of file accesses (fsuid, fsgid)
  bool operator==(const AccessIdentity&) const = default;
};
static_assert(sizeof(AccessIdentity) == 56);

// The calling thread's identity, read from the kernel, in two parts by their cost. `call` is
// call(number, a, b, c) with the kernel's own results, including negative errnos. False: it cannot
// be known (no /proc, very many groups). Async-signal-safe if `call` is.
//
// Where paths lead: three system calls, 12 us, since each look into /proc creates an inode.
template <typename Call>
bool read_access_place(Call call, AccessIdentity* out) {
  struct stat about;
  const auto look = [&](const char* path) {
    return call(SYS_stat, reinterpret_cast<long>(path), reinterpret_cast<long>(&about), 0) == 0;
  };
  if (!look("/")) return false;
  out->root_device = about.st_dev;
  out->root_inode = about.st_ino;
  // The thread's own name spaces: unshare() and setns() change those of one thread only.
  if (!look("/proc/thread-self/ns/mnt")) return false;
  out->mounts = about.st_ino;
  if (!look("/proc/thread-self/ns/user")) return false;
  out->users = about.st_ino;
  return true;
}

// What the thread may read: four system calls, 0.7 us.
template <typename Call>
bool read_access_rights(Call call, AccessIdentity* out) {
  constexpr long kMostGroups = 256;
  uint32_t groups[kMostGroups];
  const long count = call(SYS_getgroups, kMostGroups, reinterpret_cast<long>(groups), 0);
  if (count < 0) return false;
  uint64_t hash = 0xcbf29ce484222325ULL + static_cast<uint64_t>(count);  // FNV-1a over words
  for (long i = 0; i < count; ++i) hash = (hash ^ groups[i]) * 0x100000001b3ULL;
  out->groups = hash;

  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (call(SYS_capget, reinterpret_cast<long>(&header), reinterpret_cast<long>(data), 0) != 0) {
    return false;
  }
  out->capabilities = static_cast<uint64_t>(data[1].effective) << 32 | data[0].effective;
  // -1 is no valid user: nothing is set, and the current value is returned.
  out->user = static_cast<uint32_t>(call(SYS_setfsuid, -1, 0, 0));
  out->group = static_cast<uint32_t>(call(SYS_setfsgid, -1, 0, 0));
  return true;
}

template <typename Call>
bool read_access_identity(Call call, AccessIdentity* out) {
  return read_access_place(call, out) && read_access_rights(call, out);
}

}  // namespace sluice::protocol
