// A lock for short, bounded sections. Its holder has every signal blocked, so no handler of the
// holding thread can wait for it; handlers of other threads wait for a holder that is running.
#pragma once

#include <atomic>

#include "preload/base/backoff.h"
#include "preload/base/sys.h"

namespace sluice::preload {

class Spinlock {
 public:
  void lock() {
    Backoff backoff;
    while (held_.exchange(1, std::memory_order_acquire) != 0) backoff.wait();
  }
  bool try_lock() { return held_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { held_.store(0, std::memory_order_release); }
  // In a fork's child, where the holder no longer exists.
  void reset() { held_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> held_{0};
};

// Blocks signals first, then takes the lock: the claim above depends on this order.
class Locked {
 public:
  explicit Locked(Spinlock& lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sys::SignalsBlocked blocked_;
  Spinlock& lock_;
};

}  // namespace sluice::preload
