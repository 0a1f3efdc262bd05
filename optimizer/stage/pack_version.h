// What a pack has to know of a file to tell it from any other that may come to be at its path. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "protocol/pack.h"
#include "protocol/stage.h"

namespace sluice::optimizer {

// What is known of a file's mount. Asks no storage.
struct StageMount {
  bool local = false;
  // Times and inodes tell of every change, also if another file system is mounted in its place.
  bool tells_changes = false;
  uint64_t number = 0;  // of no other mount until the machine starts again; 0: the kernel has none
};
StageMount stage_mount(int fd, uint64_t device);

// `stat`, of a file on `mount`. Nothing where it could be taken for another file in a later run:
// FUSE file systems may have constant times and inodes (archives do), and the kernel, before Linux
// 6.8, has no number that tells one mount from the next.
std::optional<protocol::PackVersion> pack_version(const protocol::StageStat& stat,
                                                  const StageMount& mount);

// Whether a change from now on would show in the times of the file.
bool is_settled(const protocol::StageStat& stat);

}  // namespace sluice::optimizer
