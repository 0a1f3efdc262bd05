// Detects changes of staged files made on this host by any process: inotify on their folders, and
// on all that their paths lead through, that is the folders above and symbolic links.
//
// The kernel queues an event before the call that caused it returns: reading the queue therefore
// shows every change made before the read. Not shown are a new hard link to a file that had one
// name (only the number of links changes), and a mount over a folder, which MountWatch reports.
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

  // Becomes readable after a change; -1 if no inotify instance could be created.
  int fd() const { return fd_.get(); }

  // From now on detects changes in `folder`, and of what its path leads to. Blocks if the file
  // system does. Any thread. False: it cannot be watched, errno says why.
  bool add(const std::string& folder);
  // The same for a file for which that is not enough: a symbolic link, or one with several names.
  bool add_file(const std::string& path);
  // The file's copy was removed: ends its own watches.
  void remove_file(const std::string& path);

  struct Change {
    std::string path;  // of a file, link or folder; all below it may have changed
  };
  // Appends the changes. *lost is set if the kernel dropped events. Core thread.
  void read(std::vector<Change>* changes, bool* lost);

  // Something was mounted or unmounted at `point`: appends what is at or below it. Core thread.
  void mounted(const std::string& point, std::vector<Change>* changes);

  size_t size() const;  // number of inotify watches

 private:
  using Labels = std::set<std::string>;
  // What one watched inode means for the paths of staged files. Labels are such paths, or folders
  // in them.
  struct Watched {
    Labels contents;                                // paths of this folder, whose files are watched
    std::unordered_map<std::string, Labels> names;  // by a name in it: paths that lead through it
    Labels itself;                                  // paths of this file
  };

  template <typename Note>
  bool watch(const std::string& path, uint32_t mask, const std::string& label, Note note);
  bool walk(std::string* real, std::vector<std::string> names, const std::string& label,
            uint32_t last_mask);
  bool resolve(const std::string& folder, std::string* real);
  void unwatch(const std::string& label);
  void unwatch_below(const std::string& folder);
  void on_event(int number, uint32_t mask, const char* name, std::vector<Change>* changes);

  UniqueFd fd_;
  mutable std::mutex mutex_;
  // All members below: REQUIRES mutex_.
  std::unordered_map<int, Watched> watched_;
  std::unordered_map<std::string, std::set<int>> watches_of_;  // by label
  std::map<std::string, std::string> real_;  // folders as named, to where the name leads
  std::set<std::string> done_;               // folders whose contents are watched
  uint64_t turn_ = 0;                        // counts moves of resolved paths
  uint64_t removals_ = 0;                    // removed watches, counted
  size_t files_ = 0;                         // watches of single files
};

}  // namespace sluice::optimizer
