#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "cli/commands.h"
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

constexpr int kMaxInterpreters = 4;  // the kernel follows as many

bool executable(const std::string& path, struct stat* status) {
  return stat(path.c_str(), status) == 0 && S_ISREG(status->st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& command, const std::string& path) {
  struct stat status;
  if (command.find('/') != std::string::npos) return executable(command, &status) ? command : "";
  for (std::string candidate : split(path, ':')) {
    if (!candidate.empty()) candidate += '/';
    candidate += command;
    if (executable(candidate, &status)) return candidate;
  }
  return "";
}

// Whether the loader ignores LD_PRELOAD because the program gains privileges. Returns why, or "".
std::string secure_mode(const std::string& path) {
  struct stat status;
  struct statvfs mount;
  if (stat(path.c_str(), &status) != 0) return "";
  if (statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0) return "";
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return "is set-user-ID";
  // Without the group's execute bit, set-group-ID means mandatory locking, not a change of group.
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
      status.st_gid != getgid()) {
    return "is set-group-ID";
  }
  if (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "has file capabilities";
  }
  return "";
}

// A loader that is run as a program has no interpreter itself, and honours LD_PRELOAD.
bool is_loader(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.compare(0, 3, "ld-") == 0 || name.compare(0, 5, "ld.so") == 0;
}

std::string elf_problem(const std::string& path, int file, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32)) {
    return "is a program of another word size";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || is_loader(path)) return "";
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  const size_t size = segments.size() * sizeof(Elf64_Phdr);
  if (pread(file, segments.data(), size, static_cast<off_t>(header.e_phoff)) !=
      static_cast<ssize_t>(size)) {
    return "";
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) return "";
  }
  return "is statically linked";
}

// The interpreter of a "#!" line, or "".
std::string interpreter(const char* line, size_t length) {
  std::string text(line + 2, length - 2);
  text.resize(std::min(text.find('\n'), text.size()));
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_first_of(" \t\r", begin) - begin);
}

// Whether the preload library can be loaded into a program. Examines the file, runs nothing.
// Returns "" if it can or if that is not known (a file that execvp will refuse anyway), else one
// line with the reason: a static program, one of another word size, or one that the dynamic loader
// runs in secure mode (set-user-ID, set-group-ID, file capabilities). For a script, its interpreter
// decides. `command` is looked up in `path` as execvp does.
std::string entry_problem(const std::string& command, const std::string& path) {
  std::string program = find_program(command, path);
  for (int depth = 0; !program.empty() && depth <= kMaxInterpreters; ++depth) {
    const int file = open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) return "";
    union {
      Elf64_Ehdr header;
      char text[256];
    } start = {};
    const ssize_t got = pread(file, &start, sizeof start, 0);
    std::string problem;
    std::string next;
    if (got >= static_cast<ssize_t>(sizeof start.header) &&
        memcmp(start.header.e_ident, ELFMAG, SELFMAG) == 0) {
      problem = secure_mode(program);
      if (problem.empty()) problem = elf_problem(program, file, start.header);
    } else if (got > 2 && memcmp(start.text, "#!", 2) == 0) {
      next = interpreter(start.text, static_cast<size_t>(got));
    }
    close(file);
    if (!problem.empty()) return one_line(program) + " " + problem;
    program = next;
  }
  return "";
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
