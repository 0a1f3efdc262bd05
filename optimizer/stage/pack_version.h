// The version that a pack stores of a file, to distinguish it from any later file at its path. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "protocol/pack.h"
#include "protocol/stage.h"

namespace sluice::optimizer {

// Properties of a file's mount. Found without access to storage.
struct StageMount {
  bool local = false;
  // Times and inodes show every change, also if another file system is mounted in its place.
  bool shows_changes = false;
  uint64_t number = 0;  // unique until the machine restarts; 0: the kernel provides none
};
StageMount stage_mount(int fd, uint64_t device);

// The version of a file on `mount`, from its `stat`. nullopt where another file might get the same
// version in a later run: FUSE file systems may have constant times and inodes (archives do), and
// before Linux 6.8 the kernel has no unique mount numbers.
std::optional<protocol::PackVersion> pack_version(const protocol::StageStat& stat,
                                                  const StageMount& mount);

// The same within one run: two versions of a file at one path, on one mount, differ. Where a file
// system shows no change in its times, as the stage's own checks.
uint64_t version_in_run(const protocol::StageStat& stat);

// Whether any change from now on will show in the file's times.
bool is_settled(const protocol::StageStat& stat);

}  // namespace sluice::optimizer
