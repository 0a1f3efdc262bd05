// sluice-optimizer: the sidecar. A job's library starts it detached; a user may start it as well.
#include <sys/signalfd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "optimizer/daemon/invisible.h"
#include "optimizer/daemon/options.h"
#include "optimizer/daemon/seat.h"
#include "optimizer/io/log.h"
#include "optimizer/sidecar.h"
#include "protocol/unique_fd.h"

namespace {

using namespace sluice::optimizer;
using sluice::UniqueFd;

// Blocks the signals that end the process, also in all later threads, and returns a signalfd for
// them.
UniqueFd stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::string default_log_file(const std::string& socket) {
  const size_t dot = socket.find_last_of('.');
  return (dot == std::string::npos ? socket : socket.substr(0, dot)) + ".log";
}

int serve(const DaemonOptions& options) {
  Seat seat;
  std::string reason;
  switch (seat.take(options.socket, &reason)) {
    case Seat::Result::kBusy:
      return 0;  // another optimizer already runs here
    case Seat::Result::kRefused:
      fprintf(stderr, "sluice-optimizer: %s\n", reason.c_str());
      return 1;
    case Seat::Result::kTaken:
      break;
  }
  const bool to_stderr = options.foreground && options.log_file.empty();
  if (!to_stderr) {
    open_log(options.log_file.empty() ? default_log_file(seat.path()) : options.log_file,
             options.log);
  } else {
    open_log("", options.log);
  }
  {
    const UniqueFd stop = stop_signals();
    Sidecar sidecar(options, &seat, stop.get());
    sidecar.run();
  }
  close_log();
  seat.leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  DaemonOptions options;
  int status = 0;
  if (!parse_command_line(argc, argv, &options, &status)) return status;
  become_invisible(!options.foreground);
  try {
    status = serve(options);
  } catch (const std::exception& e) {
    fprintf(stderr, "sluice-optimizer: %s\n", e.what());
    status = 1;
  }
  // Threads that hang in a file system end with the process: no static destructors run under them.
  _exit(status);
}
