// `sluice run`: starts a command with the preload library.
#pragma once

#include <string>
#include <vector>

#include "cli/run_settings.h"

namespace sluice::cli {

// Executes the command in this process. Returns, with an exit status, only if that fails.
int run(const Given& command_line, const std::vector<std::string>& command);

}  // namespace sluice::cli
