// Whether the preload library can be loaded into a program. Examines the file, runs nothing.
#pragma once

#include <string>

namespace sluice::cli {

// Returns "" if it can or if that is not known (a file that execvp will refuse anyway), else one
// line with the reason: a static program, one of another word size, or one that the dynamic loader
// runs in secure mode (set-user-ID, set-group-ID, file capabilities). For a script, its interpreter
// decides. `command` is looked up in `path` as execvp does.
std::string entry_problem(const std::string& command, const std::string& path);

}  // namespace sluice::cli
