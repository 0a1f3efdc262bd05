#include "optimizer/plan/harm_watch.h"

#include <algorithm>

namespace sluice::optimizer {
namespace {

constexpr uint64_t kRemembered = 64;  // native samples that the mean follows
// A served sample may take so much more than a native one, and a quarter of that one: noise.
constexpr uint64_t kSlack = 100'000;  // ns
constexpr uint64_t kSlackShare = 4;
constexpr uint32_t kMostDoublings = 8;

}  // namespace

void HarmWatch::native(uint64_t took_ns) {
  took_ns = std::min(took_ns, kLongest);
  ++samples_;
  const auto weight = static_cast<int64_t>(std::min(samples_, kRemembered));
  const int64_t step = (static_cast<int64_t>(took_ns) - static_cast<int64_t>(mean_ns_)) / weight;
  mean_ns_ = static_cast<uint64_t>(static_cast<int64_t>(mean_ns_) + step);
}

bool HarmWatch::add(uint64_t lost_ns, uint64_t now_ns) {
  lost_ns_ += lost_ns;
  if (off_until_ns_ != 0 || lost_ns_ < (times_off_ == 0 ? kMost : kMostAgain)) return false;
  off_until_ns_ = now_ns + (kRest << std::min(times_off_, kMostDoublings));
  ++times_off_;
  return true;
}

bool HarmWatch::served(uint64_t took_ns, uint64_t now_ns) {
  if (samples_ < kEnough || off_until_ns_ != 0) return false;
  took_ns = std::min(took_ns, kLongest);
  const uint64_t fair = mean_ns_ + mean_ns_ / kSlackShare + kSlack;
  if (took_ns > fair) return add(took_ns - fair, now_ns);
  lost_ns_ -= std::min(lost_ns_, fair - took_ns);
  return false;
}

bool HarmWatch::wasted(uint64_t ns, uint64_t now_ns) {
  return off_until_ns_ == 0 && add(ns, now_ns);
}

bool HarmWatch::on(uint64_t now_ns) {
  if (off_until_ns_ != 0 && now_ns >= off_until_ns_) {
    off_until_ns_ = 0;
    lost_ns_ = 0;
  }
  return off_until_ns_ == 0;
}

}  // namespace sluice::optimizer
