// One look-up of a folder at a time. Many threads that open files in a few folders would each ask
// the storage for the folders' names and attributes, all at once, whenever the kernel's have
// expired (after one second on most FUSE mounts): where requests are scarce that costs a tenth of
// them. Where the kernel remembers nothing, or each file lies in a folder of its own, no request is
// saved; then paths are not visited for a while.
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
  // Has the kernel renew what it knows of a folder. True: the storage was asked. Any thread; it may
  // block.
  using LookUp = std::function<bool(const std::string& folder)>;
  explicit FolderVisits(LookUp look_up);

  // Looks up all folders of the absolute `path`, from the top. Where another thread does so, waits
  // for that instead. Any thread; blocks as an open of the path would.
  void visit(const std::string& path);
  // Threads that wait for another's look-up. Any thread.
  unsigned waiting() const;

 private:
  static constexpr unsigned kJudged = 256;   // look-ups
  static constexpr unsigned kMostAsked = 4;  // divisor: the part of them that may ask the storage
  static constexpr unsigned kRest = 8192;    // paths that are not visited if more do

  bool rests();
  void visit_folder(const std::string& folder);
  void judge(bool asked);

  const LookUp look_up_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::string> visited_;  // now, each by one thread
  unsigned waiting_ = 0, looked_up_ = 0, asked_ = 0, resting_ = 0;
};

}  // namespace sluice::optimizer
