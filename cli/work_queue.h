// Threads that work off what is known to be done and what turns up while it is done: the folders,
// files and pieces of a tree on storage with latency.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace sluice::cli {

// All members may be called by any thread. Work must not throw.
class WorkQueue {
 public:
  void add_last(std::function<void()> work);
  // Before all that waits: pieces of a file before the next file, so that few files are open.
  void add_next(std::function<void()> work);
  // Works with `threads` threads until nothing is left, or stop().
  void run(unsigned threads);
  // Drops what waits; what is under way ends.
  void stop();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  unsigned busy_ = 0;
  bool stopped_ = false;
};

}  // namespace sluice::cli
