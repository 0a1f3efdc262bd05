// Takes a descriptor that a job passed and opens the same file for ourselves. Everything here may
// block in the file system: run it on the executor.
#pragma once

#include <cstdint>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct MountFacts {
  std::string type;         // "fuse.sshfs", "nfs4", "ext4", ... as the mount table says
  uint64_t read_ahead = 0;  // bytes
  bool local = false;       // on this host
  uint32_t block = 0;       // bytes that suit one read
  unsigned max_depth = 0;
  bool fuse() const { return type.rfind("fuse", 0) == 0 && type != "fuseblk"; }
};

struct Reopened {
  UniqueFd fd;              // ours: read-only, close-on-exec, POSIX_FADV_RANDOM
  std::string problem;      // one line; empty if fd is good
  uint64_t size = 0;        // bytes
  int64_t modified_ns = 0;  // since 1970
  MountFacts mount;
  bool cache_dropped = false;  // the open emptied the file's page cache
};

// `passed` stays the caller's. The file must be a regular one and be (device, inode).
Reopened reopen(int passed, uint64_t device, uint64_t inode, bool no_cachestat);

// Opens `fd` again, twice, and says whether that emptied the page cache of `range`: mounts without
// keep_cache do so. False also if it cannot be known.
bool cache_dies_at_open(int fd, uint64_t begin, uint64_t end, bool no_cachestat);

// Asks the kernel's tables, not the mount.
MountFacts mount_facts(uint64_t device);

}  // namespace sluice::optimizer
