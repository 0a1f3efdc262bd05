#include "cli/entry_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "cli/text.h"

namespace sluice::cli {
namespace {

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

}  // namespace

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

}  // namespace sluice::cli
