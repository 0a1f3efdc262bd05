// Threads for calls that may block in a file system (open, close, statfs, drop, whole copies) and
// for long computations. Each mount may use only a part of them at a time, so that one that hangs
// cannot take them all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace sluice::optimizer {

class Executor {
 public:
  explicit Executor(unsigned threads = 8, unsigned per_mount = 2);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Work that has not begun is never run, and what it owns is not released. Does not wait for work
  // that has. One thread at a time ends executors.
  ~Executor();

  // Runs `work` on some thread, later. `mount` is a device number. Any thread.
  void run(uint64_t mount, std::function<void()> work);

  // Number of work items waiting or running for `mount`. Any thread.
  size_t waiting(uint64_t mount) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::optimizer
