// Opens a file that a job is expected to open, by name. The name may mean another file here than
// in the job: it counts only if the job's present file has the name that is said of it, too.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// Opens `path` for reading if it is a regular file, of which *about is. A device's open may have
// effects: what it is, is known before. Blocks in the file system. Any thread.
UniqueFd open_regular(const std::string& path, struct stat* about);

struct Beside {
  UniqueFd fd;  // read-only, close-on-exec; none: there is no such file
  struct stat about {};
};

// `known`: absolute path of the file (device, inode); `wanted`: of one beside it, which must be a
// regular file of the same device. Blocks in the file system. Any thread.
Beside open_beside(const std::string& known, uint64_t device, uint64_t inode,
                   const std::string& wanted);

}  // namespace sluice::optimizer
