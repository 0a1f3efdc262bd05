// `sluice status` and `sluice stop`.
#pragma once

#include <string>

namespace sluice::cli {

struct StatusOptions {
  std::string socket;  // empty: SLUICE_SOCKET, else the default path
  bool json = false;   // one line of JSON instead of tables
  bool watch = false;  // repeat every second, until interrupted or the optimizer has ended
};

// Both print to standard output, errors to standard error, and return the exit status.
int print_status(const StatusOptions& options);
int stop(const std::string& socket);

}  // namespace sluice::cli
