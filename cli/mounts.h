// /proc/self/mountinfo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::cli {

struct Mount {
  uint64_t id = 0;
  std::string device;  // "MAJOR:MINOR"
  std::string root;    // the folder of the file system that is mounted
  std::string point;   // the mount point
  std::string type;    // "ext4", "nfs4", "fuse.sshfs"
  std::string source;
  std::string options;  // of the file system
};

std::vector<Mount> read_mounts();

// The mount that contains `path`, by its mount id, else by the longest mount point. REQUIRES:
// `path` is absolute. Returns one with an empty type if there is none.
Mount mount_of(const std::string& path);

// Whether this type of file system has its data behind a network or another process, so that every
// open and read may take long.
bool is_remote(const std::string& type);

}  // namespace sluice::cli
