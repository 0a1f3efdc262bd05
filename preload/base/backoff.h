// Waiting for another thread to finish a short section. Async-signal-safe.
#pragma once

#include <time.h>

#include "preload/base/sys.h"

namespace sluice::preload {

// One object for each wait. After a few turns it sleeps: a thread of real-time priority that only
// yields would prevent the thread that it waits for from running.
class Backoff {
 public:
  // Waits about a second in all, for callers that must not wait forever, for example because the
  // other thread may have left its section by a jump. False: that time is over.
  bool wait_bounded() {
    if (left_ == 0) return false;
    --left_;
    wait();
    return true;
  }
  void wait() {
    if (turns_ < kYields) {
      ++turns_;
      sys::call(SYS_sched_yield);
      return;
    }
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = pause_ns_};
    sys::call(SYS_nanosleep, sys::word(&pause), 0);
    if (pause_ns_ < kLongestNs) pause_ns_ *= 2;
  }

 private:
  static constexpr int kYields = 32;
  static constexpr long kLongestNs = 1000000;
  int turns_ = 0;
  int left_ = 1000;
  long pause_ns_ = 20000;
};

}  // namespace sluice::preload
