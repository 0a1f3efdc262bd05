// The optimizer's own command line. What a job wants travels in its handshake instead.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::optimizer {

struct DaemonOptions {
  std::string socket;  // empty: the place that protocol/place.h names
  uint32_t linger = 60;
  std::string log = "warn";
  std::string log_file;  // empty: beside the socket, removed at the end if nothing went wrong
  uint64_t memory = 0;   // bytes, 0: 20 % of what the memory cgroup leaves
  bool foreground = false;
  bool no_uring = false;  // force-fallback, as in protocol/options.h
  bool no_cachestat = false;
  bool no_pagemap_scan = false;
};

// Returns true if the program is to go on, else *status is its exit status (help, or one line of
// complaint on stderr).
bool parse_command_line(int argc, char** argv, DaemonOptions* options, int* status);

}  // namespace sluice::optimizer
