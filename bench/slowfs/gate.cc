#include "bench/slowfs/gate.h"

#include <poll.h>

#include <chrono>
#include <ctime>

#include "bench/slowfs/clock.h"

namespace sluice::slowfs {
namespace {
// How often a wait looks whether the mount is over.
constexpr uint64_t kLookNs = 50'000'000;
}  // namespace

Gate::Gate(uint64_t hang_after, uint64_t fail_after)
    : hang_after_(hang_after), fail_after_(fail_after) {}

bool Gate::over() {
  if (stopped_.load(std::memory_order_relaxed)) return true;
  // The kernel reports an error on the session's descriptor once nothing is mounted any more.
  pollfd entry{fd_, 0, 0};
  return fd_ >= 0 && poll(&entry, 1, 0) > 0 && (entry.revents & POLLERR) != 0;
}

bool Gate::pass(uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (hanging_ || bytes_.load(std::memory_order_relaxed) >= hang_after_.load()) {
    ++waiting_;
    while (hanging_ || bytes_.load(std::memory_order_relaxed) >= hang_after_.load()) {
      if (over()) {
        --waiting_;
        return false;
      }
      changed_.wait_for(lock, std::chrono::nanoseconds(kLookNs));
    }
    --waiting_;
  }
  if (bytes_.load(std::memory_order_relaxed) >= fail_after_) return false;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

bool Gate::sleep_until(uint64_t time_ns) {
  for (bool slept = false;; slept = true) {
    const uint64_t now = now_ns();
    if (now >= time_ns) return slept;
    // A long wait is cut so that unmounting does not wait for a slow link.
    const bool last = time_ns - now <= 2 * kLookNs;
    const uint64_t until = last ? time_ns : now + kLookNs;
    const timespec wake{static_cast<time_t>(until / 1'000'000'000),
                        static_cast<long>(until % 1'000'000'000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr) == EINTR) {
    }
    if (last || over()) return true;
  }
}

void Gate::hang() {
  const std::lock_guard lock(mutex_);
  hanging_ = true;
}

void Gate::release() {
  const std::lock_guard lock(mutex_);
  hanging_ = false;
  hang_after_ = UINT64_MAX;
  changed_.notify_all();
}

void Gate::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace sluice::slowfs
