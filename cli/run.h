// `sluice run`: the command with the preload library in it.
#pragma once

#include <string>
#include <vector>

#include "cli/run_settings.h"

namespace sluice::cli {

// Becomes the command. Returns an exit status only if that fails.
int run(const Given& command_line, const std::vector<std::string>& command);

}  // namespace sluice::cli
