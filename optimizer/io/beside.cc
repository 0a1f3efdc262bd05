#include "optimizer/io/beside.h"

#include <fcntl.h>
#include <unistd.h>

namespace sluice::optimizer {

Beside open_beside(const std::string& known, uint64_t device, uint64_t inode,
                   const std::string& wanted) {
  struct stat about {};
  Beside out;
  if (known.empty() || known.front() != '/' || stat(known.c_str(), &about) != 0) return out;
  if (about.st_dev != device || about.st_ino != inode) return out;
  // A device's open may have effects: what it is, is known before it is opened for reading.
  const UniqueFd place(open(wanted.c_str(), O_PATH | O_CLOEXEC));
  if (!place || fstat(place.get(), &out.about) != 0) return out;
  if (!S_ISREG(out.about.st_mode) || out.about.st_dev != device) return out;
  const std::string again = "/proc/self/fd/" + std::to_string(place.get());
  out.fd = UniqueFd(open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  return out;
}

}  // namespace sluice::optimizer
