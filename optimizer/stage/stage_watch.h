// Changes of staged files that are made through this host, by whomever: inotify on the folders
// that they are in, and on all that their names lead through: the folders above, and links.
//
// The kernel queues an event before the call that caused it returns; so whoever reads what is
// queued now has seen every change that was made before now. Not seen are a new hard link to a
// file that had one name (it changes the number of links alone), and a mount over a folder, which
// MountWatch reports.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class StageWatch {
 public:
  StageWatch();
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;
  ~StageWatch() = default;

  // Becomes readable when something changed; -1 if the kernel has no inotify left for us.
  int fd() const { return fd_.get(); }

  // Changes in `folder` are seen from now on, and when its name leads elsewhere. Blocks if the file
  // system does. Any thread. False: they cannot be, errno says why.
  bool add(const std::string& folder);
  // The same for one file of which that is not enough: a symbolic link, or one of many names.
  bool add_file(const std::string& path);
  // The copy of a file is gone.
  void forget_file(const std::string& path);

  struct Change {
    std::string path;  // of a file, a link or a folder; all below it may be different now
  };
  // What changed, appended. *lost: something did and we do not know what. Core thread.
  void read(std::vector<Change>* changes, bool* lost);

  // Something was mounted or unmounted at `point`: what is at or below it may be different now,
  // appended. Core thread.
  void mounted(const std::string& point, std::vector<Change>* changes);

  size_t size() const;  // watches of the kernel's

 private:
  using Labels = std::set<std::string>;
  // What a name below a watched folder, or the folder itself, means for names of staged files.
  struct Watched {
    Labels contents;                                // this folder is known as these
    std::unordered_map<std::string, Labels> names;  // these lead through this name in it
    Labels itself;                                  // this is a file, known as these
  };

  template <typename Note>
  bool watch(const std::string& path, uint32_t mask, const std::string& label, Note note);
  bool walk(std::string* real, std::vector<std::string> names, const std::string& label,
            uint32_t last_mask);
  bool resolve(const std::string& folder, std::string* real);
  void forget(const std::string& label);
  void forget_below(const std::string& folder);
  void on_event(int number, uint32_t mask, const char* name, std::vector<Change>* changes);

  UniqueFd fd_;
  mutable std::mutex mutex_;
  // All below: REQUIRES mutex_.
  std::unordered_map<int, Watched> watched_;
  std::unordered_map<std::string, std::set<int>> watches_of_;  // by label
  std::map<std::string, std::string> real_;  // folders, as they are named, and where that leads
  std::set<std::string> done_;               // folders whose contents are watched
  uint64_t turn_ = 0;                        // how often something that was resolved has moved
  uint64_t removals_ = 0;                    // of watches
  size_t files_ = 0;                         // watches of single files
};

}  // namespace sluice::optimizer
