// What is open: files and folders from open to release. The kernel names them by address; they
// are owned here, so that those still open when the mount ends are closed with it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sluice::slowfs {

struct Handle {
  virtual ~Handle() = default;
};

class Handles {
 public:
  // Takes a handle and returns what fuse_file_info::fh is to be. Any thread.
  uint64_t add(std::unique_ptr<Handle> handle) {
    const uint64_t id = reinterpret_cast<uint64_t>(handle.get());
    const std::lock_guard lock(mutex_);
    open_[id] = std::move(handle);
    return id;
  }

  // Ends a handle. Any thread.
  void remove(uint64_t id) {
    std::unique_ptr<Handle> ended;  // outlives the lock: closing may take its time
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    ended = std::move(found->second);
    open_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Handle>> open_;
};

// The handle behind fuse_file_info::fh. REQUIRES: it was added as a T and not removed.
template <typename T>
T& handle_of(uint64_t id) {
  return static_cast<T&>(*reinterpret_cast<Handle*>(id));
}

}  // namespace sluice::slowfs
