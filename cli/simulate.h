// `sluice simulate`: what replacement policies would achieve for a job, without running it.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace sluice::cli {

// As the user wrote them; empty: the default.
struct SimulateOptions {
  std::string samples, sizes, epochs, seed, jobs;  // a synthetic workload
  std::string trace;                               // or a recorded one
  std::string memory, policy, system, drift;
  std::string latency, bandwidth, depth, compute;
  std::string csv, picture, decisions;
  bool advise = false;
};

void add_simulate_options(CLI::App* command, SimulateOptions* options);

// Prints to standard output, errors to standard error, and returns the exit status.
int simulate(const SimulateOptions& options);

}  // namespace sluice::cli
