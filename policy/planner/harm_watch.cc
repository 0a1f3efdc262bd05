#include "policy/planner/harm_watch.h"

#include <cmath>

namespace sluice::policy {
namespace {

constexpr uint64_t kRemembered = 64;  // native samples over which the mean runs
// Noise: a sample read through the mechanism may take this much, and a quarter of a native sample's
// time, longer than a native one before the excess counts as lost.
constexpr uint64_t kSlack = 100'000;  // ns
constexpr uint64_t kSlackShare = 4;
constexpr uint32_t kMostDoublings = 8;  // of the time until the mechanism is tried again
constexpr uint32_t kMostPatience = 16;  // doublings of the loss that starts the next trial
// The trial tests its groups after each sample, so chance gets many attempts: hence the far bound.
constexpr double kSigmas = 5;
constexpr double kSigmasHarmless = 3;
constexpr uint32_t kLeastGroup = 24;  // samples, before variances are compared
constexpr double kWorthwhile = 0.1;   // of a native sample's time
constexpr double kWorthwhileNs = 20'000;
// Groups this far apart need no test by variance, where chance separates so many samples at most
// once in kRare trials: a busy processor makes a job's times fall into two groups, too. It holds up
// no thread for as long as kLongWait, so then kRareLong suffices.
constexpr double kRare = 400, kRareLong = 30;
constexpr double kApart = 2;
constexpr double kApartNs = 5'000'000;
constexpr double kLongWait = 100'000'000;

// In how many ways `control` of all samples can be chosen. Which samples are the control group is
// random, so chance makes them the fastest once in so many trials.
double choices(uint32_t control, uint32_t treated) {
  double ways = 1;
  for (uint32_t i = 1; i <= std::min(control, treated) && ways < kRare; ++i) {
    ways *= static_cast<double>(control + treated + 1 - i) / i;
  }
  return ways;
}

}  // namespace

void HarmWatch::Group::add(double value) {
  least = count == 0 ? value : std::min(least, value);
  most = std::max(most, value);
  ++count;
  const double off = value - mean;
  mean += off / count;
  squares += off * (value - mean);
}

double HarmWatch::Group::error2() const {
  return count < 2 ? INFINITY : squares / (count - 1) / count;
}

HarmWatch::Verdict HarmWatch::native(uint64_t took_ns, uint64_t now_ns) {
  took_ns = std::min(took_ns, kLongest);
  ++samples_;
  const auto weight = static_cast<int64_t>(std::min(samples_, kRemembered));
  const int64_t step = (static_cast<int64_t>(took_ns) - static_cast<int64_t>(mean_ns_)) / weight;
  mean_ns_ = static_cast<uint64_t>(static_cast<int64_t>(mean_ns_) + step);
  if (state_ != State::kTrial) return Verdict::kNothing;
  control_.add(static_cast<double>(took_ns));
  return judge(now_ns);
}

HarmWatch::Verdict HarmWatch::prefetched(uint64_t took_ns, uint64_t now_ns, uint64_t expected_ns) {
  if (state_ == State::kOff) return Verdict::kNothing;
  took_ns = std::min(took_ns, kLongest);
  const uint64_t usual = samples_ < kEnough ? expected_ns : mean_ns_;
  const uint64_t fair = usual + usual / kSlackShare + kSlack;
  if (state_ == State::kTrial) {
    treated_.add(static_cast<double>(took_ns));
    if (usual != 0 && took_ns > fair) lost_ns_ += took_ns - fair;
    return judge(now_ns);
  }
  if (usual == 0) return Verdict::kNothing;
  if (took_ns > fair) return suspect(took_ns - fair);
  lost_ns_ -= std::min(lost_ns_, fair - took_ns);
  return Verdict::kNothing;
}

HarmWatch::Verdict HarmWatch::wasted(uint64_t ns, uint64_t) {
  return state_ == State::kOn ? suspect(ns) : Verdict::kNothing;
}

// Each trial that finds no harm raises the loss that starts the next one.
HarmWatch::Verdict HarmWatch::suspect(uint64_t lost_ns) {
  lost_ns_ += lost_ns;
  if (lost_ns_ < kSuspect << std::min(times_harmless_, kMostPatience)) return Verdict::kNothing;
  begin_trial();
  return Verdict::kTry;
}

void HarmWatch::begin_trial() {
  state_ = State::kTrial;
  control_ = treated_ = {};
}

// Welch's statistic of the two groups, unless they are so far apart that they do not overlap.
HarmWatch::Verdict HarmWatch::judge(uint64_t now_ns) {
  const bool enough = control_.count + treated_.count >= kMostTrial;
  // If all samples went through the mechanism, or none did, there is nothing to compare.
  if (control_.count == 0 || treated_.count == 0) {
    return enough ? end_trial(false, now_ns) : Verdict::kNothing;
  }
  const double gap = treated_.least - control_.most;
  const double rare = gap > kLongWait ? kRareLong : kRare;
  if (treated_.least > control_.most * kApart && gap > kApartNs &&
      choices(control_.count, treated_.count) >= rare) {
    return end_trial(true, now_ns);
  }
  if (control_.count < kLeastGroup || treated_.count < kLeastGroup) {
    return enough ? end_trial(false, now_ns) : Verdict::kNothing;
  }
  const double more = treated_.mean - control_.mean;
  const double error = std::sqrt(control_.error2() + treated_.error2());
  const double worthwhile = std::max(control_.mean * kWorthwhile, kWorthwhileNs);
  if (more > kSigmas * error && more > worthwhile) return end_trial(true, now_ns);
  return more < -kSigmasHarmless * error || enough ? end_trial(false, now_ns) : Verdict::kNothing;
}

HarmWatch::Verdict HarmWatch::end_trial(bool harmful, uint64_t now_ns) {
  if (!harmful) {
    state_ = State::kOn;
    ++times_harmless_;
    lost_ns_ = 0;
    return Verdict::kHarmless;
  }
  state_ = State::kOff;
  off_until_ns_ = now_ns + (kRest << std::min(times_off_, kMostDoublings));
  ++times_off_;
  return Verdict::kHarmful;
}

bool HarmWatch::on(uint64_t now_ns) {
  if (state_ == State::kOff && now_ns >= off_until_ns_) {
    lost_ns_ = 0;
    begin_trial();
  }
  return state_ != State::kOff;
}

}  // namespace sluice::policy
