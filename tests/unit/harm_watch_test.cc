// When a mechanism is put on trial, when it is switched off, and when not.
#include "policy/planner/harm_watch.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace sluice::policy {
namespace {

using Verdict = HarmWatch::Verdict;

constexpr uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

HarmWatch knowing(uint64_t native_ns) {
  HarmWatch watch;
  for (int i = 0; i < 20; ++i) watch.native(native_ns, 0);
  return watch;
}

// A job of `samples`, of which those with the mechanism take `helped()` and the others `native()`:
// what the watch found, and what was lost beside a run without the mechanism.
struct Outcome {
  bool tried = false, off = false;
  double lost_ns = 0;
};
Outcome run(HarmWatch* watch, int samples, const std::function<double()>& native,
            const std::function<double()>& helped) {
  Outcome result;
  for (int i = 0; i < samples && !result.off; ++i) {
    const bool control = watch->in_trial() && i % 2 == 0;
    const double without = native(), with = helped();
    const auto took = static_cast<uint64_t>(control ? without : with);
    const Verdict verdict = control ? watch->native(took, 0) : watch->prefetched(took, 0);
    if (!control) result.lost_ns += with - without;
    result.tried |= verdict == Verdict::kTry;
    result.off |= verdict == Verdict::kHarmful;
  }
  return result;
}

std::function<double()> always(double ns) {
  return [ns] { return ns; };
}

TEST(HarmWatch, WhatSavesStaysOnWithoutATrial) {
  HarmWatch watch = knowing(20 * kMs);
  const Outcome result = run(&watch, 10'000, always(20 * kMs), always(kMs));
  EXPECT_FALSE(result.tried);
  EXPECT_TRUE(watch.on(10 * kSecond));
  EXPECT_EQ(watch.lost_ns(), 0U);
}

TEST(HarmWatch, HarmEndsBeforeASecondIsLost) {
  for (const uint64_t took : {2 * kMs, 10 * kMs, 50 * kMs, 150 * kMs}) {
    HarmWatch watch = knowing(kMs);
    const Outcome result = run(&watch, 10'000, always(kMs), always(static_cast<double>(took)));
    EXPECT_TRUE(result.off) << took;
    EXPECT_FALSE(watch.on(10 * kSecond));
    EXPECT_LE(result.lost_ns, kSecond) << took;
  }
}

// Where a single sample loses a second nothing can be found out sooner: three of them say it.
TEST(HarmWatch, GreatHarmEndsAfterAFewSamples) {
  HarmWatch watch = knowing(kMs);
  const Outcome result = run(&watch, 100, always(kMs), always(5.0 * kSecond));
  EXPECT_TRUE(result.off);
  EXPECT_LE(result.lost_ns, 10 * 5.0 * kSecond);
}

TEST(HarmWatch, HarmWithinNoiseIsFound) {
  std::mt19937 draw(3);
  std::exponential_distribution<double> took(1.0 / (5.0 * kMs));
  for (int round = 0; round < 10; ++round) {
    HarmWatch watch = knowing(5 * kMs);
    const Outcome result = run(
        &watch, 5000, [&] { return took(draw); }, [&] { return 3 * took(draw); });
    EXPECT_TRUE(result.off) << round;
    EXPECT_LE(result.lost_ns, 1.5 * kSecond) << round;
  }
}

TEST(HarmWatch, SavingsOfLongAgoDoNotPayForHarm) {
  HarmWatch watch = knowing(10 * kMs);
  for (int i = 0; i < 100'000; ++i) watch.prefetched(kMs, 0);
  EXPECT_TRUE(run(&watch, 100, always(10 * kMs), always(30 * kMs)).off);
}

TEST(HarmWatch, NoiseIsNoHarm) {
  std::mt19937 draw(7);
  std::exponential_distribution<double> took(1.0 / (5.0 * kMs));
  for (int round = 0; round < 200; ++round) {
    HarmWatch watch = knowing(5 * kMs);
    const auto sample = [&] { return took(draw); };
    EXPECT_FALSE(run(&watch, 5000, sample, sample).off) << round;
  }
}

// Where others use the processor, too, some samples take several times as long, with the mechanism
// or not: a few of each group say nothing.
TEST(HarmWatch, TwoGroupsByChanceAreNoHarm) {
  std::mt19937 draw(1);
  std::bernoulli_distribution preempted(0.5), half(0.5);
  int tried = 0, off = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    HarmWatch watch = knowing(10 * kMs);
    for (int i = 0; i < 800 && !watch.is_off(); ++i) {
      const uint64_t took = (preempted(draw) ? 80 : 10) * kMs;
      const bool control = watch.in_trial() && half(draw);
      const Verdict verdict = control ? watch.native(took, 0) : watch.prefetched(took, 0);
      tried += verdict == Verdict::kTry ? 1 : 0;
    }
    off += watch.is_off() ? 1 : 0;
  }
  EXPECT_GE(tried, kRounds);
  EXPECT_LE(off, kRounds / 500);
}

// A job whose samples take five times as long from some moment on, with the mechanism or not: a
// picture is larger, the processor is busy. What was native before says nothing of it.
TEST(HarmWatch, AJobThatGrowsSlowerIsNotHarmed) {
  std::mt19937 draw(11);
  std::uniform_real_distribution<double> took(15.0 * kMs, 35.0 * kMs);
  for (int round = 0; round < 50; ++round) {
    HarmWatch watch = knowing(5 * kMs);
    const auto sample = [&] { return took(draw); };
    const Outcome result = run(&watch, 3000, sample, sample);
    EXPECT_TRUE(result.tried) << round;
    EXPECT_FALSE(result.off) << round;
  }
}

TEST(HarmWatch, TrialsThatFindNothingBecomeRare) {
  HarmWatch watch = knowing(5 * kMs);
  int trials = 0;
  bool control = false;
  for (int i = 0; i < 50'000; ++i) {
    control = watch.in_trial() && !control;
    const Verdict verdict =
        control ? watch.native(20 * kMs, 0) : watch.prefetched(20 * kMs + i % 3 * kMs, 0);
    trials += verdict == Verdict::kTry ? 1 : 0;
    ASSERT_NE(verdict, Verdict::kHarmful);
    if (i % 1000 == 0) {
      for (int k = 0; k < 64 && !watch.in_trial(); ++k) watch.native(5 * kMs, 0);
    }
  }
  EXPECT_GE(trials, 1);
  EXPECT_LE(trials, 14);
}

TEST(HarmWatch, NothingIsSuspectedWithoutAnyExpectation) {
  HarmWatch watch;
  for (uint32_t i = 0; i + 1 < HarmWatch::kEnough; ++i) watch.native(kMs, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(watch.prefetched(kSecond, 0), Verdict::kNothing);
  EXPECT_EQ(watch.native_ns(), 0U);
}

TEST(HarmWatch, WhatTheStorageTakesIsExpectedWhereNothingNativeWasSeen) {
  HarmWatch watch;
  Verdict verdict = Verdict::kNothing;
  for (int i = 0; i < 20 && verdict == Verdict::kNothing; ++i) {
    verdict = watch.prefetched(50 * kMs, 0, 5 * kMs);
  }
  EXPECT_EQ(verdict, Verdict::kTry);
  EXPECT_TRUE(watch.in_trial());
}

TEST(HarmWatch, ATrialWithoutAControlGroupEnds) {
  HarmWatch watch = knowing(kMs);
  Verdict verdict = Verdict::kNothing;
  for (uint32_t i = 0; i < 2 * HarmWatch::kMostTrial && verdict != Verdict::kHarmless; ++i) {
    verdict = watch.prefetched(10 * kMs, 0);
    ASSERT_NE(verdict, Verdict::kHarmful);
  }
  EXPECT_EQ(verdict, Verdict::kHarmless);
}

TEST(HarmWatch, WhatIsNeverReadStartsATrial) {
  HarmWatch watch;
  int times = 0;
  while (watch.wasted(20 * kMs, 0) != Verdict::kTry) ASSERT_LT(++times, 50);
  EXPECT_TRUE(watch.on(kSecond));
}

TEST(HarmWatch, ItIsTriedAgainLaterAndInATrial) {
  HarmWatch watch = knowing(kMs);
  ASSERT_TRUE(run(&watch, 1000, always(kMs), always(50 * kMs)).off);
  EXPECT_FALSE(watch.on(HarmWatch::kRest - 1));
  EXPECT_EQ(watch.prefetched(50 * kMs, 0), Verdict::kNothing) << "it is off already";
  EXPECT_TRUE(watch.on(HarmWatch::kRest));
  EXPECT_TRUE(watch.in_trial());
  const Outcome again = run(&watch, 1000, always(kMs), always(50 * kMs));
  EXPECT_TRUE(again.off);
  EXPECT_LE(again.lost_ns, kSecond / 2);
  EXPECT_FALSE(watch.on(2 * HarmWatch::kRest - 1));
  EXPECT_TRUE(watch.on(2 * HarmWatch::kRest));
  EXPECT_EQ(watch.times_off(), 2U);
}

}  // namespace
}  // namespace sluice::policy
