// The optimizer's own command line. A job's options arrive in its hello instead.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::optimizer {

struct DaemonOptions {
  std::string socket;  // empty: the path from protocol/place.h
  uint32_t linger = 60;
  std::string log = "warn";
  std::string log_file;  // empty: beside the socket; removed at the end unless a warning was logged
  uint64_t memory = 0;   // bytes, 0: 20 % of what the memory cgroup leaves
  bool foreground = false;
  bool no_uring = false;  // force-fallback, as in protocol/options.h
  bool no_cachestat = false;
  bool no_pagemap_scan = false;
};

// True: the program is to continue. Else help, or one line of error on stderr, was printed and
// *status is the exit status.
bool parse_command_line(int argc, char** argv, DaemonOptions* options, int* status);

}  // namespace sluice::optimizer
