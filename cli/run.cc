#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cli/entry_check.h"
#include "cli/program.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

constexpr const char* kLibrary = "libsluice.so";

void warn(const std::string& text) { fmt::print(stderr, "sluice: warning: {}\n", text); }

void warn_of_unknown(const std::vector<std::string>& variables) {
  std::vector<std::string> shown;
  for (const std::string& name : variables) {
    const protocol::OptionInfo* meant = protocol::misspelled_variable(name.c_str(), name.size());
    shown.push_back(one_line(name));
    if (meant == nullptr) continue;
    shown.back() += fmt::format(" (did you mean {}?)", meant->variable);
    unsetenv(name.c_str());  // or the library would report it again
  }
  if (!shown.empty()) warn(fmt::format("no option is called {}; ignored", fmt::join(shown, ", ")));
}

}  // namespace

int run(const Given& command_line, const std::vector<std::string>& command) {
  if (command.empty()) {
    fmt::print(stderr, "sluice: run: no command; write sluice run [options] -- COMMAND...\n");
    return kExitUsage;
  }
  const Resolved settings = resolve_settings(command_line);
  if (!settings.problem.empty()) {
    fmt::print(stderr, "sluice: {}\n", settings.problem);
    return kExitUsage;
  }
  warn_of_unknown(settings.unknown);
  const std::string library = companion(kLibrary);
  if (library.empty()) {
    fmt::print(stderr, "sluice: {} is neither beside this program nor in ../lib\n", kLibrary);
    return kExitCannotRun;
  }
  if (const std::string problem = entry_problem(command[0], search_path()); !problem.empty()) {
    warn(problem + ": it runs as without Sluice");
  }
  export_settings(settings.values);
  // The process that this one becomes; the time distinguishes it from an earlier one with its pid.
  const auto since = std::chrono::steady_clock::now().time_since_epoch().count();
  setenv("SLUICE_JOB", fmt::format("{}-{:x}", getpid(), since).c_str(), 1);
  if (!export_preload(library)) {
    fmt::print(stderr, "sluice: {}: LD_PRELOAD cannot carry a path with a space or a colon\n",
               one_line(library));
    return kExitCannotRun;
  }
  allow_sanitized_programs();
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  // execvp's signature predates const; it does not modify the strings.
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int problem = errno;
  fmt::print(stderr, "sluice: {}: {}\n", one_line(command[0]), strerror(problem));
  return problem == ENOENT ? kExitNotFound : kExitNotExecutable;
}

}  // namespace sluice::cli
