// How long a process may wait for an optimizer that does not answer: a budget that waiting uses up
// and that refills with time. While answers come in time it regains 1/32 of the time that passes,
// else so little that a job whose optimizer is stopped for good loses less than half a percent.
// Each wait in vain that the budget cut short doubles what the next question needs at least: an
// optimizer whose answers take 100 ms, however much of the budget is used up, has them waited for
// in the end. The budget is SLUICE_PATIENCE. No system calls; the owner provides lock and clock.
// Nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::preload {

class Patience {
 public:
  static constexpr uint64_t kMost = 500'000'000;  // unless it is set
  // With less left nothing is asked: an optimizer needs some time to answer. Doubled up to half of
  // what the budget is by default, until it is full again.
  static constexpr uint64_t kLeast = 20'000'000, kMostLeast = kMost / 2;

  // The budget, full. REQUIRES: at least 4 * kLeast.
  void set_most(uint64_t most_ns) { left_ = most_ = most_ns; }
  uint64_t most() const { return most_; }

  // How long one question may wait, at most `most`; 0: do not ask.
  uint64_t left(uint64_t now_ns, uint64_t most) {
    grow(now_ns);
    if (left_ < least_) return 0;
    return left_ < most ? left_ : most;
  }
  // What the last question of a process may wait, after which nothing needs the budget.
  uint64_t rest(uint64_t now_ns) {
    grow(now_ns);
    return left_;
  }
  // A question was waited for `waited_ns` without an answer.
  void wasted(uint64_t now_ns, uint64_t waited_ns) {
    grow(now_ns);
    left_ -= waited_ns < left_ ? waited_ns : left_;
    if (waited_ns < most_ / 2) least_ = std::min({2 * least_, kMostLeast, most_ / 2});
    prompt_ = false;
  }
  // An answer came in time.
  void answered(uint64_t now_ns) {
    grow(now_ns);
    prompt_ = true;
  }

 private:
  static constexpr uint64_t kShare = 256, kPromptShare = 32;

  void grow(uint64_t now_ns) {
    if (seen_ns_ == 0) seen_ns_ = now_ns;
    if (now_ns < seen_ns_) return;
    const uint64_t share = prompt_ ? kPromptShare : kShare;
    const uint64_t more = (now_ns - seen_ns_) / share;
    left_ = more < most_ - left_ ? left_ + more : most_;
    if (left_ == most_) least_ = kLeast;
    seen_ns_ += more * share;  // the remainder of the division is not lost
  }

  uint64_t most_ = kMost, left_ = kMost, least_ = kLeast, seen_ns_ = 0;
  bool prompt_ = true;
};

}  // namespace sluice::preload
