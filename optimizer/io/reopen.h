// Opens the file of a descriptor that a job passed once more, for the optimizer itself. Everything
// here may block in the file system: run it on the executor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "optimizer/io/residency.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct MountFacts {
  std::string type;         // from the mount table: "fuse.sshfs", "nfs4", "ext4", ...
  uint64_t read_ahead = 0;  // bytes
  bool local = false;       // on this host
  uint32_t block = 0;       // preferred bytes of one read
  unsigned max_depth = 0;
  bool fuse() const { return type.rfind("fuse", 0) == 0 && type != "fuseblk"; }
};

struct Reopened {
  UniqueFd fd;              // read-only, close-on-exec, POSIX_FADV_RANDOM
  std::string problem;      // one line; empty if fd is good
  uint64_t size = 0;        // bytes
  int64_t modified_ns = 0;  // since 1970
  MountFacts mount;
  std::shared_ptr<const FileResidency> residency;  // REQUIRES: fd is good
  bool cache_dropped = false;                      // the open emptied the file's page cache
};

// The caller still owns `passed`. Fails unless it is the regular file (device, inode).
Reopened reopen(int passed, uint64_t device, uint64_t inode, bool no_cachestat);

// Opens the file of `fd` again, up to twice, and returns whether that emptied the page cache of
// `range`, as FUSE mounts without keep_cache do. False also if this cannot be determined.
bool cache_dies_at_open(int fd, policy::Range range, const FileResidency& residency);

// Reads the kernel's tables; does not access the mount.
MountFacts mount_facts(uint64_t device);

}  // namespace sluice::optimizer
