// Whether a mechanism (copies of files, records read ahead) does a dataset more harm than good, by
// what its samples take the job's own threads. Pure: time is an argument. One thread.
//
// Suspicion is cheap and may be wrong: a cumulative sum of what served samples took beyond what
// they were expected to take without the mechanism, less what they saved, never below 0. What a
// sample takes drifts with the job (a larger picture, a busy processor), so suspicion alone
// switches nothing off. It starts a trial: a random half of the samples to come, the control group,
// is read as it would be without the mechanism, at the same time and by the same threads as the
// others. The mechanism is switched off only if the control group is faster beyond chance.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::optimizer {

class HarmWatch {
 public:
  // kTry: a trial begins. kHarmless: it is over, and the mechanism stays on. kHarmful: it is off.
  enum class Verdict : uint8_t { kNothing, kTry, kHarmless, kHarmful };

  // A sample was read without the mechanism, and took so long.
  Verdict native(uint64_t took_ns, uint64_t now_ns);
  // One was served by it. `expected_ns`: what it would take without, where too few native samples
  // are known to say so; 0: not known either.
  Verdict served(uint64_t took_ns, uint64_t now_ns, uint64_t expected_ns = 0);
  // The storage was kept busy for so long by what was never read.
  Verdict wasted(uint64_t ns, uint64_t now_ns);

  // Off for a while; then it is on again, in a trial, and off for twice as long if that was in
  // vain.
  bool on(uint64_t now_ns);
  bool is_off() const { return state_ == State::kOff; }  // on() may switch it on again
  bool in_trial() const { return state_ == State::kTrial; }
  // Lost by the samples that were served since suspicion was at 0; once it is off, what it took to
  // find out.
  uint64_t lost_ns() const { return lost_ns_; }
  // What a sample takes without the mechanism, on average; 0: too few were seen.
  uint64_t native_ns() const { return samples_ < kEnough ? 0 : mean_ns_; }
  uint32_t times_off() const { return times_off_; }

  static constexpr uint64_t kSuspect = 150'000'000;    // ns lost, of all threads together
  static constexpr uint64_t kRest = 20'000'000'000;    // ns until it is tried again, the first time
  static constexpr uint32_t kEnough = 8;               // native samples
  static constexpr uint32_t kMostTrial = 512;          // samples of a trial
  static constexpr uint64_t kLongest = 1'000'000'000;  // ns; a longer sample counts as that

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

}  // namespace sluice::optimizer
