// When a mechanism is switched off, and when not.
#include "optimizer/plan/harm_watch.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::optimizer {
namespace {

constexpr uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

HarmWatch knowing(uint64_t native_ns) {
  HarmWatch watch;
  for (int i = 0; i < 20; ++i) watch.native(native_ns);
  return watch;
}

TEST(HarmWatch, WhatSavesStaysOn) {
  HarmWatch watch = knowing(20 * kMs);
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(watch.served(kMs, i * kMs));
  EXPECT_TRUE(watch.on(10 * kSecond));
  EXPECT_EQ(watch.lost_ns(), 0U);
}

TEST(HarmWatch, HarmEndsBeforeASecondIsLost) {
  for (const uint64_t took : {2 * kMs, 10 * kMs, 100 * kMs, 5 * kSecond}) {
    HarmWatch watch = knowing(kMs);
    uint64_t lost = 0;
    bool off = false;
    for (int i = 0; i < 10'000 && !off; ++i) {
      lost += std::min(took, HarmWatch::kLongest) - kMs;
      off = watch.served(took, i * kMs);
    }
    EXPECT_TRUE(off) << took;
    EXPECT_FALSE(watch.on(10 * kSecond));
    EXPECT_LE(lost, kSecond) << took;
  }
}

TEST(HarmWatch, SavingsOfLongAgoDoNotPayForHarm) {
  HarmWatch watch = knowing(10 * kMs);
  for (int i = 0; i < 100'000; ++i) watch.served(kMs, 0);
  int served = 0;
  while (!watch.served(30 * kMs, 0)) ASSERT_LT(++served, 40);
}

TEST(HarmWatch, NoiseIsNoHarm) {
  std::mt19937 draw(7);
  std::exponential_distribution<double> took(1.0 / (5.0 * kMs));
  for (int round = 0; round < 20; ++round) {
    HarmWatch watch;
    for (int i = 0; i < 64; ++i) watch.native(static_cast<uint64_t>(took(draw)));
    bool off = false;
    // Neither better nor worse, whatever single samples take.
    for (int i = 0; i < 2000; ++i) {
      if (i % 4 == 0) watch.native(static_cast<uint64_t>(took(draw)));
      off |= watch.served(static_cast<uint64_t>(took(draw)), 0);
    }
    EXPECT_FALSE(off) << round;
  }
}

TEST(HarmWatch, NothingIsJudgedWithoutNativeSamples) {
  HarmWatch watch;
  for (uint32_t i = 0; i + 1 < HarmWatch::kEnough; ++i) watch.native(kMs);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.served(kSecond, 0));
  EXPECT_EQ(watch.native_ns(), 0U);
}

TEST(HarmWatch, WhatNobodyReadsIsHarmWithoutThem) {
  HarmWatch watch;
  int times = 0;
  while (!watch.wasted(20 * kMs, 0)) ASSERT_LT(++times, 50);
  EXPECT_FALSE(watch.on(kSecond));
}

TEST(HarmWatch, ItIsTriedAgainLaterAndLessPatiently) {
  HarmWatch watch = knowing(kMs);
  uint64_t now = 0;
  while (!watch.served(50 * kMs, now)) now += kMs;
  EXPECT_FALSE(watch.on(now + HarmWatch::kRest - 1));
  EXPECT_FALSE(watch.served(50 * kMs, now)) << "it is off already";
  now += HarmWatch::kRest;
  EXPECT_TRUE(watch.on(now));
  int served = 1;
  while (!watch.served(50 * kMs, now)) ASSERT_LT(++served, 3);
  EXPECT_FALSE(watch.on(now + 2 * HarmWatch::kRest - 1));
  EXPECT_TRUE(watch.on(now + 2 * HarmWatch::kRest));
  EXPECT_EQ(watch.times_off(), 2U);
}

}  // namespace
}  // namespace sluice::optimizer
