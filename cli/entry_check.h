// Can the preload library enter a given program? Looks at the file, runs nothing.
#pragma once

#include <string>

namespace sluice::cli {

// Returns "" if it can or if that cannot be told (a file that execvp will refuse anyway), else
// one line that says why not: a static program, one of another word size, or one that the
// dynamic loader runs in secure mode (set-user-ID, set-group-ID, file capabilities). Scripts are
// judged by their interpreter. `command` is looked up in `path` as execvp does.
std::string entry_problem(const std::string& command, const std::string& path);

}  // namespace sluice::cli
