// The name of the sluice program, how it finds its companion files, and its exit statuses.
#pragma once

#include <string>
#include <string_view>

#include "protocol/program_version.h"

namespace sluice::cli {

using protocol::kProgramVersion;

// Exit statuses. The last three are env(1)'s.
inline constexpr int kExitProblem = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitCannotRun = 125;      // sluice itself failed
inline constexpr int kExitNotExecutable = 126;  // the command was found but cannot be executed
inline constexpr int kExitNotFound = 127;

// Prints the problem, one line, on standard error; returns `status`.
int failed(int status, std::string_view problem);

// Absolute path of a file installed with this program: beside it (a build folder) or in ../lib.
// Empty if it is in neither place.
std::string companion(const char* name);

}  // namespace sluice::cli
