// Threads for calls that a file system may block in (open, close, statfs, drop, whole copies), and
// for what takes long. A mount gets a part of them at a time, so that one that hangs cannot take
// them all.
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
  // Does not wait for work that hangs; what has not been started is dropped.
  ~Executor();

  // Runs `work` on some thread, later. `mount` is a device number. Any thread.
  void run(uint64_t mount, std::function<void()> work);

  // Pieces of work waiting or running for `mount`.
  size_t waiting(uint64_t mount) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::optimizer
