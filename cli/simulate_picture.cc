// The picture is drawn by scripts/simulate_picture.py, which is compiled in, so that an installed
// program needs no other file. The CSV is the script's standard input.
#include "cli/simulate_picture.inc"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/files.h"
#include "cli/simulate_output.h"
#include "protocol/unique_fd.h"

namespace sluice::cli {
namespace {

constexpr const char* kPython = "/usr/bin/python3";  // Debian's: the one that has its matplotlib

}  // namespace

std::string simulate_picture(const std::string& csv, const std::string& path) {
  const UniqueFd input(memfd_create("sluice-csv", MFD_CLOEXEC));
  if (!input) return fmt::format("--picture: {}", strerror(errno));
  if (!write_fully(input.get(), csv) || lseek(input.get(), 0, SEEK_SET) != 0) {
    return fmt::format("--picture: {}", strerror(errno));
  }
  const char* const words[] = {kPython, "-c", kSimulatePicture, path.c_str(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, kPython, &actions, nullptr, const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fmt::format("--picture: {}: {}", kPython, strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fmt::format("--picture: {}", strerror(errno));
  }
  // The script prints other problems itself; its status says which kind.
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) {
    return fmt::format("--picture needs matplotlib for {} (Debian: python3-matplotlib)", kPython);
  }
  return fmt::format("--picture {}: cannot be drawn or written", path);
}

}  // namespace sluice::cli
