// What follows from a sample that was read, on the disk: policy/chunks/log_plan.h's moves, carried
// out with log_files.h. Blocks in the file system: for the thread that writes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "optimizer/chunks/log_files.h"
#include "policy/chunks/log_contents.h"
#include "policy/chunks/log_plan.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

// Where a sample's bytes come from: a copy in memory, or a log. Never its original, whose storage
// may hang: one thread writes what jobs on all mounts have read.
struct LogSource {
  struct Logged {
    policy::LogRange place;
    policy::LogContents::Entry entry;
  };
  uint64_t bytes = 0;
  std::shared_ptr<UniqueFd> copy;  // closed as soon as it was read
  std::optional<Logged> logged;    // in place of `copy`
};

struct LogMoved {
  uint64_t checksum = 0;  // 0: the sample was not written, as it could not be read, or changed
  int error = 0;          // an errno: the disk failed
};

// `current`: the log that is read. Moves of one sample, or releases alone.
LogMoved carry_out(LogFiles* files, uint32_t current, const policy::LogPlan::Moves& moves,
                   const LogSource& source);

}  // namespace sluice::optimizer
