#include "preload/data/slow_mounts.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "preload/base/own_descriptor.h"
#include "preload/base/sys.h"
#include "preload/data/mount_types.h"

namespace sluice::preload {
namespace {

// f_type of file systems whose data comes from elsewhere; those without a name in linux/magic.h
// have the numbers of their own sources.
constexpr uint32_t kSlow[] = {
    NFS_SUPER_MAGIC,  FUSE_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC,
    CEPH_SUPER_MAGIC, V9FS_MAGIC,       AFS_SUPER_MAGIC,  AFS_FS_MAGIC,    CODA_SUPER_MAGIC,
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x20030528,  // OrangeFS
    0xaad7aaea,  // PanFS
};

// A mount's device number, and in the highest bit whether it is slow; 0: free. When all are taken
// a mount replaces another one.
constexpr uint64_t kIsSlow = 1ULL << 63;
constinit std::atomic<uint64_t> g_known[16]{};

// Whether the table of mounts says so, which needs no answer from a server.
bool is_listed_as_slow(dev_t device) {
  const OwnDescriptor fd(
      sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/mountinfo"), O_RDONLY | O_CLOEXEC));
  MountTypes types(minor(device));
  char piece[1024];
  while (fd.ours()) {
    const long got = sys::call(SYS_read, fd.number(), sys::word(piece), sizeof piece);
    if (got == -EINTR) continue;
    if (got <= 0) break;
    for (long at = 0; at < got; ++at) {
      if (types.feed(piece[at])) return is_remote_type(types.type());
    }
  }
  return false;
}

// What the table does not name as remote is asked: a local file system answers at once, and a
// remote one of another name (virtiofs), or of another namespace's table, is found as well.
bool is_slow(int fd, dev_t device, bool* known) {
  *known = true;
  if (is_listed_as_slow(device)) return true;
  struct statfs system;
  *known = sys::call(SYS_fstatfs, fd, sys::word(&system)) == 0;
  return *known && std::find(std::begin(kSlow), std::end(kSlow),
                             static_cast<uint32_t>(system.f_type)) != std::end(kSlow);
}

}  // namespace

bool on_slow_mount(int fd, const struct stat& about) {
  if (major(about.st_dev) != 0) return false;
  const uint64_t device = about.st_dev & ~kIsSlow;
  const std::atomic<uint64_t>* free = nullptr;
  for (const std::atomic<uint64_t>& one : g_known) {
    const uint64_t value = one.load(std::memory_order_relaxed);
    if ((value & ~kIsSlow) == device) return (value & kIsSlow) != 0;
    if (value == 0 && free == nullptr) free = &one;
  }
  bool known = false;
  const bool slow = is_slow(fd, about.st_dev, &known);
  if (!known) return false;
  const size_t at = free != nullptr ? static_cast<size_t>(free - g_known)
                                    : static_cast<size_t>(device) % std::size(g_known);
  g_known[at].store(device | (slow ? kIsSlow : 0), std::memory_order_relaxed);
  return slow;
}

}  // namespace sluice::preload
