#include "optimizer/io/beside.h"

#include <fcntl.h>
#include <unistd.h>

namespace sluice::optimizer {

UniqueFd open_regular(const std::string& path, struct stat* about) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place || fstat(place.get(), about) != 0 || !S_ISREG(about->st_mode)) return {};
  const std::string again = "/proc/self/fd/" + std::to_string(place.get());
  return UniqueFd(open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
}

Beside open_beside(const std::string& known, uint64_t device, uint64_t inode,
                   const std::string& wanted) {
  struct stat about {};
  Beside out;
  if (known.empty() || known.front() != '/' || stat(known.c_str(), &about) != 0) return out;
  if (about.st_dev != device || about.st_ino != inode) return out;
  out.fd = open_regular(wanted, &out.about);
  if (out.fd && out.about.st_dev != device) out.fd.reset();
  return out;
}

}  // namespace sluice::optimizer
