// Whether a mechanism (staged copies, prefetched records) harms a dataset more than it helps, by
// how long the job's own threads take for its samples. Pure: time is an argument. One thread.
//
// Suspicion is cheap and may be wrong: a cumulative sum of the time by which samples read through
// the mechanism exceeded their expected time without it, less the time they saved, never below 0.
// A sample's time drifts with the job (a larger picture, a busy processor), so suspicion alone
// disables nothing. It starts a trial: a random half of the following samples, the control group,
// is read without the mechanism, at the same time and by the same threads as the other half. The
// mechanism is disabled only if the control group is faster beyond chance.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::policy {

class HarmWatch {
 public:
  // kTry: a trial begins. kHarmless: the trial is over, and the mechanism stays enabled. kHarmful:
  // it is disabled.
  enum class Verdict : uint8_t { kNothing, kTry, kHarmless, kHarmful };

  // A sample was read without the mechanism and took `took_ns`.
  Verdict native(uint64_t took_ns, uint64_t now_ns);
  // A sample was read through the mechanism. `expected_ns`: its time without it, used while too few
  // native samples are known; 0: unknown.
  Verdict prefetched(uint64_t took_ns, uint64_t now_ns, uint64_t expected_ns = 0);
  // The storage was busy for `ns` with prefetched data that no job read.
  Verdict wasted(uint64_t ns, uint64_t now_ns);

  // Whether the mechanism may be used. After some time off it is enabled again, in a trial, and is
  // off for twice as long if that trial finds harm again.
  bool on(uint64_t now_ns);
  bool is_off() const { return state_ == State::kOff; }  // on() may enable it again
  bool in_trial() const { return state_ == State::kTrial; }
  // Time lost by samples read through the mechanism since suspicion was last 0; after it was
  // disabled, the time lost until harm was established.
  uint64_t lost_ns() const { return lost_ns_; }
  // The mean time of a sample without the mechanism; 0: too few were seen.
  uint64_t native_ns() const { return samples_ < kEnough ? 0 : mean_ns_; }
  uint32_t times_off() const { return times_off_; }

  static constexpr uint64_t kSuspect = 150'000'000;    // ns lost, of all threads together
  static constexpr uint64_t kRest = 20'000'000'000;    // ns until the first retry
  static constexpr uint32_t kEnough = 8;               // native samples
  static constexpr uint32_t kMostTrial = 512;          // samples of a trial
  static constexpr uint64_t kLongest = 1'000'000'000;  // ns; a longer sample counts as this long

 private:
  enum class State : uint8_t { kOn, kTrial, kOff };
  // Mean and variance of a group, one value at a time (Welford).
  struct Group {
    uint32_t count = 0;
    double mean = 0, squares = 0, least = 0, most = 0;
    void add(double value);
    double error2() const;  // of the mean, squared
  };

  Verdict suspect(uint64_t lost_ns);
  Verdict judge(uint64_t now_ns);
  Verdict end_trial(bool harmful, uint64_t now_ns);
  void begin_trial();

  State state_ = State::kOn;
  uint64_t mean_ns_ = 0, samples_ = 0;  // native
  uint64_t lost_ns_ = 0;
  uint64_t off_until_ns_ = 0;
  uint32_t times_off_ = 0, times_harmless_ = 0;
  Group control_, treated_;  // of the trial
};

}  // namespace sluice::policy
