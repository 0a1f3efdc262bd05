// Work that other threads pass to the core thread. post() and backlog() from any thread; the rest
// from the core thread only.
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class Mailbox {
 public:
  void post(std::function<void()> work) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = work_.empty();
      work_.push_back(std::move(work));
      backlog_.store(work_.size(), std::memory_order_relaxed);
    }
    if (first) eventfd_write(event_.get(), 1);
  }

  // Becomes readable when there is work.
  int fd() const { return event_.get(); }

  // Runs all work. An exception of one item is passed to `failed`; the others still run.
  void run(const std::function<void(const std::exception&)>& failed) {
    eventfd_t ignored = 0;
    eventfd_read(event_.get(), &ignored);
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(mutex_);
      work.swap(work_);
      backlog_.store(0, std::memory_order_relaxed);
    }
    for (const auto& item : work) {
      try {
        item();
      } catch (const std::exception& error) {
        failed(error);
      }
    }
  }

  // Number of waiting items; producers of bulk work pause above a limit of their own.
  size_t backlog() const { return backlog_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
  std::atomic<size_t> backlog_{0};
  UniqueFd event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace sluice::optimizer
