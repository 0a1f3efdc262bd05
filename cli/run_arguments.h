// Splits the arguments of `sluice run` into its own options and the command. Pure.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

struct RunArguments {
  std::vector<std::string> options;  // "--flag=value", or "--flag" and an empty value, or "--help"
  std::vector<std::string> command;  // empty if there is none
};

// The command begins after "--", or at the first word that is neither an option nor an option's
// value. So `sluice run --size 50M -- python3 train.py --size 3` and the same without "--" both
// leave "--size 3" to the command. A switch without a value is on ("--off" and "--off no" both
// work). What cannot be an option is left in `options`, where the parser rejects it.
RunArguments split_run_arguments(const std::vector<std::string>& arguments);

}  // namespace sluice::cli
