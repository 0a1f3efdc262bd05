// File operations on a trace. All may block in the file system: executor threads only.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "protocol/trace.h"

namespace sluice::optimizer {

// Identifies the descriptor's file, and checks that samples may be recorded in it: a regular file,
// open for reading and appending. `problem` is empty or a one-line error.
struct TraceIdentity {
  uint64_t device = 0, inode = 0;
  std::string problem;
};
TraceIdentity identify_trace(int fd);

// Prepares the file for appending records: writes the header of an empty file, and removes an
// incomplete last record. `jobs` is the first unused job number.
struct PreparedTrace {
  uint32_t jobs = 0;
  std::string problem;
};
PreparedTrace prepare_trace(int fd);

// Appends the records. Returns a one-line error, or "". Removes a record that could not be written
// completely.
std::string append_records(int fd, std::span<const protocol::TraceRecord> records);

}  // namespace sluice::optimizer
