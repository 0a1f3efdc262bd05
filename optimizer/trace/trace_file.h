// A trace as a file. All of it may block as the file's mount does: executor's threads only.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "protocol/trace.h"

namespace sluice::optimizer {

// Which file a descriptor is of, if samples may be recorded in it: a regular file, open for
// reading and for writing at its end. `problem` is empty, or says in one line why not.
struct TraceIdentity {
  uint64_t device = 0, inode = 0;
  std::string problem;
};
TraceIdentity identify_trace(int fd);

// Makes the file ready for records at its end: an empty one gets its header, and of one that has
// records the last is taken off if it is cut short. `jobs`: the first number no job has yet.
struct PreparedTrace {
  uint32_t jobs = 0;
  std::string problem;
};
PreparedTrace prepare_trace(int fd);

// Writes the records at the file's end. Returns what went wrong in one line, or nothing; a record
// that could not be written whole is taken off again.
std::string append_records(int fd, std::span<const protocol::TraceRecord> records);

}  // namespace sluice::optimizer
