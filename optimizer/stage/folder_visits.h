// One look-up of a folder at a time. Many threads that open files in a few folders would each ask
// the storage for the folders' names and attributes, all at once, whenever the kernel's have
// expired (after one second on most FUSE mounts): where requests are scarce that costs a tenth of
// them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace sluice::optimizer {

class FolderVisits {
 public:
  FolderVisits();
  // `look_up` gets a path, and has the kernel renew what it knows of it. Any thread; it may block.
  explicit FolderVisits(std::function<void(const std::string& folder)> look_up);

  // Looks up all folders of the absolute `path`, from the top. Where another thread does so, waits
  // for that instead. Any thread; blocks as an open of the path would.
  void visit(const std::string& path);
  // Threads that wait for another's look-up. Any thread.
  unsigned waiting() const;

 private:
  void visit_folder(const std::string& folder);

  const std::function<void(const std::string& folder)> look_up_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::string> visited_;  // now, each by one thread
  unsigned waiting_ = 0;
};

}  // namespace sluice::optimizer
