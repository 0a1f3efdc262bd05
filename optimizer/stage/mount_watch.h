// Detects mounts and unmounts in the optimizer's mount namespace: after a mount over a folder all
// paths below it name other files, and inotify does not report it. Core thread only.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// The unescaped mount points in the text of a mountinfo file, each prefixed by its mount's number.
// Pure. Skips malformed lines.
std::set<std::string> mounts_of(std::string_view mountinfo);

class MountWatch {
 public:
  MountWatch();

  // Has an exceptional condition (EPOLLPRI) after a change; -1 without /proc.
  int fd() const { return fd_.get(); }
  // Mount points, absolute, at which something was mounted or unmounted since the last call.
  std::vector<std::string> changed();

 private:
  std::set<std::string> read() const;

  UniqueFd fd_;
  std::set<std::string> known_;
};

}  // namespace sluice::optimizer
