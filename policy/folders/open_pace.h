// How many files a job has open ahead of it: as many as it takes while the names that led to them
// are remembered by the kernel, and before they have been open for too long. No I/O; one thread.
#pragma once

#include <cstdint>

namespace sluice::policy {

class OpenPace {
 public:
  static constexpr unsigned kLeast = 4, kFirst = 128, kMost = 384;  // files
  static constexpr uint64_t kFreshNs = 800'000'000;  // names are still known after so long

  unsigned window() const { return window_; }
  // The job took a file so long after it began to be opened. If its path had to be looked up again
  // by then, that is a round trip for each folder: on FUSE, names are valid for a second by
  // default, on NFS for longer.
  void taken(uint64_t held_ns, uint64_t now_ns) {
    if (held_ns > kFreshNs) {
      shrink(now_ns, kFreshNs);
    } else if (held_ns < kFreshNs / 2 && window_ < kMost) {
      ++window_;
    }
  }
  // A file was held for too long. What was opened at about the same time counts once.
  void expired(uint64_t now_ns) { shrink(now_ns, kSettleNs); }

 private:
  static constexpr uint64_t kSettleNs = 3'000'000'000;  // as long as files are held

  void shrink(uint64_t now_ns, uint64_t settle_ns) {
    if (now_ns < settled_ns_) return;
    settled_ns_ = now_ns + settle_ns;
    window_ -= (window_ - kLeast) / 2;
  }

  unsigned window_ = kFirst;
  uint64_t settled_ns_ = 0;
};

}  // namespace sluice::policy
