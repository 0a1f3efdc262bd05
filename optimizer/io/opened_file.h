// A file that was opened before a job does, to be handed over at the job's open.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/control.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct OpenedFile {
  UniqueFd fd;                  // none: it could not be opened
  std::vector<UniqueFd> more;   // the same, each opened once more
  protocol::TakenFile about{};  // what the path was
  uint64_t began_ns = 0;        // on CLOCK_MONOTONIC, before it was opened
  uint64_t took_ns = 0;         // to open it

  // The job's own flags would be none, too: all of open()'s that are allowed here are of the
  // descriptor.
  void clear_flags() {
    if (fd && fcntl(fd.get(), F_SETFL, 0) != 0) fd.reset();
    std::erase_if(more, [](const UniqueFd& one) { return fcntl(one.get(), F_SETFL, 0) != 0; });
  }
};

// Opens a file `times` times, with what its path was. Its `fd` is none if it is no regular file.
// Blocks in the file system. Any thread.
OpenedFile open_ahead(const std::string& path, unsigned times);

// Whether the path leads to the file still. The kernel then knows its names, and attributes, for as
// long as after any lookup. Blocks as open_ahead() does.
bool look_up_again(const std::string& path, const protocol::TakenFile& about);

// A time of a file's attributes, in nanoseconds since 1970.
constexpr int64_t in_ns(int64_t seconds, int64_t nanoseconds) {
  return seconds * 1'000'000'000 + nanoseconds;
}

}  // namespace sluice::optimizer
