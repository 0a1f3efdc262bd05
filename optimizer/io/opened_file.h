// A file that was opened before a job does, to be handed over at the job's open.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>

#include "protocol/control.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct OpenedFile {
  UniqueFd fd;                  // none: it could not be opened
  UniqueFd second;              // the same, opened once more; none: it was not
  protocol::TakenFile about{};  // what the path was
  uint64_t began_ns = 0;        // on CLOCK_MONOTONIC, before it was opened
  uint64_t took_ns = 0;         // to open it

  // The job's own flags would be none, too: all of open()'s that are allowed here are of the
  // descriptor.
  void clear_flags() {
    for (UniqueFd* one : {&fd, &second}) {
      if (*one && fcntl(one->get(), F_SETFL, 0) != 0) one->reset();
    }
  }
};

}  // namespace sluice::optimizer
