#include "cli/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>

namespace sluice::cli {

int failed(int status, std::string_view problem) {
  fmt::print(stderr, "sluice: {}\n", problem);
  return status;
}

std::string companion(const char* name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof self) return "";
  const std::string path(self, static_cast<size_t>(length));
  const std::string folder = path.substr(0, path.rfind('/'));
  std::string candidates[] = {folder + "/" + name,
                              folder.substr(0, folder.rfind('/')) + "/lib/" + name};
  for (std::string& candidate : candidates) {
    if (access(candidate.c_str(), R_OK) == 0) return std::move(candidate);
  }
  return "";
}

}  // namespace sluice::cli
