// Threads for calls that may block in a file system (open, close, statfs, drop, whole copies) and
// for long computations. A mount that hangs holds up no other: each may use only a part of the
// threads at a time, and one of which nothing runs is given a thread although all are busy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace sluice::optimizer {

// The key of a folder whose mount is not known. None of unknown_mount()'s.
inline uint64_t mount_key(const std::string& folder) {
  return uint64_t{1} << 63 | std::hash<std::string>{}(folder);
}

class Executor {
 public:
  explicit Executor(unsigned threads = 8, unsigned per_mount = 2);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  // Work that has not begun is never run, and what it owns is not released. Does not wait for work
  // that has. One thread at a time ends executors.
  ~Executor();

  // Runs `work` on some thread, later. `mount` is a device number, or another key of what may hang
  // together: mount_key(), or unknown_mount() of policy/util/ids.h. Any thread.
  void run(uint64_t mount, std::function<void()> work);

  // Number of work items waiting or running for `mount`. Any thread.
  size_t waiting(uint64_t mount) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::optimizer
