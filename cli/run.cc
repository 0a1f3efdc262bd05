#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cli/commands.h"
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

void add(RunArguments* split, const std::string& option, const std::string& value) {
  // To the parser, "--flag=" lacks its value, and "--flag" "-x" are two options.
  if (value.empty()) {
    split->options.push_back(option);
    split->options.push_back(value);
  } else {
    split->options.push_back(option + "=" + value);
  }
}

}  // namespace

RunArguments split_run_arguments(const std::vector<std::string>& arguments) {
  RunArguments split;
  size_t at = 0;
  for (; at < arguments.size(); ++at) {
    const std::string& word = arguments[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const size_t equals = word.find('=');
    if (word.compare(0, 2, "--") == 0 && equals != std::string::npos) {
      add(&split, word.substr(0, equals), word.substr(equals + 1));
      continue;
    }
    const protocol::OptionInfo* info = word.compare(0, 2, "--") == 0
                                           ? protocol::find_option(word.data() + 2, word.size() - 2)
                                           : nullptr;
    if (info == nullptr) {
      split.options.push_back(word);
      continue;
    }
    const bool last = at + 1 == arguments.size();
    if (info->kind == protocol::OptionKind::kSwitch) {
      bool on = true;
      if (!last && protocol::parse_switch(arguments[at + 1].c_str(), &on)) ++at;
      add(&split, word, on ? "on" : "off");
    } else if (last) {
      split.options.push_back(word);
    } else {
      add(&split, word, arguments[++at]);
    }
  }
  split.command.assign(arguments.begin() + static_cast<ptrdiff_t>(at), arguments.end());
  return split;
}

int run(const Given& command_line, const std::vector<std::string>& command) {
  if (command.empty()) {
    return failed(kExitUsage, "run: no command; write sluice run [options] -- COMMAND...");
  }
  const Resolved settings = resolve_settings(command_line);
  if (!settings.problem.empty()) return failed(kExitUsage, settings.problem);
  warn_of_unknown(settings.unknown);
  const std::string library = companion(kLibrary);
  if (library.empty()) {
    return failed(kExitCannotRun,
                  fmt::format("{} is neither beside this program nor in ../lib", kLibrary));
  }
  if (const std::string problem = entry_problem(command[0], search_path()); !problem.empty()) {
    warn(problem + ": it runs as without Sluice");
  }
  export_settings(settings.values);
  // The process that this one becomes; the time distinguishes it from an earlier one with its pid.
  const auto since = std::chrono::steady_clock::now().time_since_epoch().count();
  setenv("SLUICE_JOB", fmt::format("{}-{:x}", getpid(), since).c_str(), 1);
  if (!export_preload(library)) {
    return failed(kExitCannotRun, one_line(library) +
                                      ": LD_PRELOAD cannot carry a path with a "
                                      "space or a colon");
  }
  allow_sanitized_programs();
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  // execvp's signature predates const; it does not modify the strings.
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int problem = errno;
  return failed(problem == ENOENT ? kExitNotFound : kExitNotExecutable,
                one_line(command[0]) + ": " + strerror(problem));
}

}  // namespace sluice::cli
