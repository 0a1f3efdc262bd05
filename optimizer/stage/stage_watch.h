// Changes of staged files that are made through this host, by whomever: inotify on the folders
// that they are in, and on the folders above those.
//
// The kernel queues an event before the call that caused it returns; so whoever reads what is
// queued now has seen every change that was made before now.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "optimizer/util/fd.h"

namespace sluice::optimizer {

class StageWatch {
 public:
  StageWatch();
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;
  ~StageWatch() = default;

  // Becomes readable when something changed; -1 if the kernel has no inotify left for us.
  int fd() const { return fd_.get(); }

  // Changes in `folder` are seen from now on, and renames of it or above it. Blocks if the file
  // system does. Any thread. False: they cannot be, errno says why.
  bool add(const std::string& folder);

  struct Change {
    std::string path;  // of a file, a link or a folder; all below it may be different now
  };
  // What changed, appended. *lost: something did and we do not know what. Core thread.
  void read(std::vector<Change>* changes, bool* lost);

  size_t size() const;

 private:
  bool watch(const std::string& folder, uint32_t mask);

  UniqueFd fd_;
  mutable std::mutex mutex_;
  // As they were named: a link to a folder is another name.
  std::unordered_map<int, std::set<std::string>> folders_;  // REQUIRES: mutex_
  std::set<std::string> done_, above_;                      // REQUIRES: mutex_
};

}  // namespace sluice::optimizer
