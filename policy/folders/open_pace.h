// How many files a job has open ahead of it: as many as it takes before they have been open for too
// long. No I/O; one thread.
#pragma once

#include <cstdint>

namespace sluice::policy {

class OpenPace {
 public:
  static constexpr unsigned kLeast = 4, kFirst = 128, kMost = 384;  // files

  unsigned window() const { return window_; }
  void taken() { window_ += window_ < kMost ? 1 : 0; }
  // A file was held for too long. What was opened at about the same time counts once.
  void expired(uint64_t now_ns) {
    if (now_ns < settled_ns_) return;
    settled_ns_ = now_ns + kSettleNs;
    window_ -= (window_ - kLeast) / 2;
  }

 private:
  static constexpr uint64_t kSettleNs = 3'000'000'000;  // as long as files are held

  unsigned window_ = kFirst;
  uint64_t settled_ns_ = 0;
};

}  // namespace sluice::policy
