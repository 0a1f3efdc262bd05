#include "optimizer/io/ancestors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {
namespace {

// 0: no such process.
uint32_t parent_of(uint32_t pid) {
  const UniqueFd fd(open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t length = fd ? read(fd.get(), text, sizeof text - 1) : -1;
  if (length <= 0) return 0;
  text[length] = '\0';
  // "4711 (name) S 4710 ...": the name may contain any character.
  constexpr size_t kState = sizeof(") S ") - 1;
  const char* behind = strrchr(text, ')');
  if (behind == nullptr || strlen(behind) <= kState) return 0;
  return static_cast<uint32_t>(strtoul(behind + kState, nullptr, 10));
}

}  // namespace

std::vector<uint32_t> ancestors_of(uint32_t pid, unsigned most) {
  std::vector<uint32_t> found;
  while (found.size() < most && (pid = parent_of(pid)) > 1) found.push_back(pid);
  return found;
}

}  // namespace sluice::optimizer
