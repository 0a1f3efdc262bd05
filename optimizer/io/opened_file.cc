#include "optimizer/io/opened_file.h"

#include <utility>

#include "optimizer/io/beside.h"
#include "optimizer/io/clock.h"

namespace sluice::optimizer {

OpenedFile open_ahead(const std::string& path, unsigned times) {
  OpenedFile result;
  result.began_ns = now_ns();
  struct stat about {};
  result.fd = open_regular(path, &about);
  result.took_ns = now_ns() - result.began_ns;
  result.about = {about.st_dev, about.st_ino, in_ns(about.st_ctim.tv_sec, about.st_ctim.tv_nsec)};
  while (result.fd && result.more.size() + 1 < times) {
    struct stat again {};
    UniqueFd one = open_regular(path, &again);
    if (!one || again.st_dev != about.st_dev || again.st_ino != about.st_ino) break;
    result.more.push_back(std::move(one));
  }
  result.clear_flags();
  return result;
}

bool look_up_again(const std::string& path, const protocol::TakenFile& about) {
  struct stat now {};
  return stat(path.c_str(), &now) == 0 && now.st_dev == about.device && now.st_ino == about.inode &&
         in_ns(now.st_ctim.tv_sec, now.st_ctim.tv_nsec) == about.changed_ns;
}

}  // namespace sluice::optimizer
