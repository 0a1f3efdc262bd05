// What is reported to a job as saved, and the union of waits that it rests on.
#include "policy/planner/savings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "preload/base/wait_union.h"

namespace sluice {
namespace {

using policy::Savings;
using preload::WaitUnion;

constexpr uint64_t kSecond = 1'000'000'000;

TEST(Savings, RequestsOfSeveralReadersOverlap) {
  Savings savings;
  savings.enter(0);
  for (uint64_t reader = 1; reader <= 4; ++reader) savings.reads(reader, false, reader);
  for (int i = 0; i < 400; ++i) savings.hit({1e7, 1e5});
  EXPECT_EQ(savings.avoided_ns(0), kSecond);  // 400 x 10 ms / 4
}

TEST(Savings, OpenThatWasMadeAheadIsSavedWhateverElseIsWaitedFor) {
  Savings savings;
  savings.enter(0);
  savings.opened(kSecond);
  EXPECT_EQ(savings.avoided_ns(3 * kSecond), kSecond);
  savings.enter(3 * kSecond);
  EXPECT_EQ(savings.avoided_ns(3 * kSecond), kSecond);
}

TEST(Savings, NoMoreReadersThanTheLinkBears) {
  Savings savings;
  savings.enter(0);
  for (uint64_t reader = 1; reader <= 64; ++reader) savings.reads(reader, false, reader);
  for (int i = 0; i < 400; ++i) savings.hit({1e7, 5e6});
  EXPECT_EQ(savings.avoided_ns(0), 2 * kSecond);  // 400 x 5 ms
}

TEST(Savings, WaitingThatNothingExplainsIsTakenOff) {
  Savings savings;
  savings.enter(kSecond);
  savings.reads(1, false, 1);
  savings.hit({2e9, 0});
  EXPECT_EQ(savings.avoided_ns(kSecond), 2 * kSecond);
  EXPECT_EQ(savings.avoided_ns(2 * kSecond), kSecond);
  EXPECT_EQ(savings.avoided_ns(9 * kSecond), 0U);
}

TEST(Savings, WhatWasNotHelpedExplainsItsOwnWaiting) {
  Savings savings;
  savings.enter(0);
  savings.reads(1, false, 1);
  savings.hit({2e9, 0});
  savings.missed({1e9, 0});
  EXPECT_EQ(savings.avoided_ns(0), 2 * kSecond);  // no more than was waited
  EXPECT_EQ(savings.avoided_ns(kSecond), 2 * kSecond);
  EXPECT_EQ(savings.avoided_ns(2 * kSecond), kSecond);
}

TEST(Savings, EpochOfUnknownSamplesIsNeitherSavedNorTakenOff) {
  Savings savings;
  savings.enter(0);
  savings.reads(1, true, 1);
  savings.unknown();
  EXPECT_EQ(savings.avoided_ns(17 * kSecond), 0U);
  savings.enter(17 * kSecond);
  savings.reads(1, false, 1);
  savings.hit({3e9, 0});
  EXPECT_EQ(savings.avoided_ns(17 * kSecond), 3 * kSecond);
}

TEST(Savings, WhatWorkersWouldHaveReadMeanwhileIsNoSaving) {
  Savings savings;
  savings.enter(0);
  savings.reads(1, true, kSecond);
  savings.reads(1, true, 11 * kSecond);  // ten seconds of computing
  savings.hit({8e9, 0});
  EXPECT_EQ(savings.avoided_ns(0), 0U);
  savings.hit({4e9, 0});
  EXPECT_EQ(savings.avoided_ns(0), 2 * kSecond);
}

TEST(Savings, TimeInWhichNothingWasReadHidesNothing) {
  Savings savings;
  savings.enter(0);
  savings.reads_on(1, true, kSecond, {1e12, 0, 0});
  savings.reads_on(1, true, 3600 * kSecond, {1e12, 0, 0});
  savings.hit({3e9, 0});
  EXPECT_EQ(savings.avoided_ns(0), 2 * kSecond);
}

// A batch is read at once, then computed with for long: the kernel reads on for its window, no
// more.
TEST(Savings, KernelReadsAheadForItsWindowOnly) {
  Savings savings;
  savings.enter(0);
  savings.reads_on(1, false, kSecond, {0, 1e8, 0});
  for (uint64_t second = 2; second <= 11; ++second) {
    savings.reads_on(1, false, second * kSecond, {0, 1e8, 0});        // computed
    savings.reads_on(1, false, second * kSecond + 1, {3e8, 1e8, 0});  // read
  }
  savings.hit({3e9, 0});
  EXPECT_NEAR(savings.avoided_ns(0), 2 * kSecond, 100);
}

// A job that computes with each piece longer than storage takes for it waits for nothing.
TEST(Savings, KernelSufficesForAnEvenReader) {
  Savings savings;
  savings.enter(0);
  for (uint64_t tenth = 10; tenth <= 110; ++tenth) {
    savings.reads_on(1, false, tenth * kSecond / 10, {3e7, 1e8, 0});
  }
  savings.hit({3e9, 0});
  EXPECT_EQ(savings.avoided_ns(0), 0U);
}

// Seen from steps of 100 MB each, how the computing was spread over a step is not known.
TEST(Savings, HalfOfACoarseStepIsTakenAsComputedWhileTheKernelReads) {
  Savings savings;
  savings.enter(0);
  savings.reads_on(1, false, kSecond, {0, 1e7, 0});
  for (uint64_t tenth = 11; tenth <= 20; ++tenth) {
    savings.reads_on(1, false, tenth * kSecond / 10, {1e8, 1e7, 0});
  }
  savings.hit({1e9, 0});
  EXPECT_NEAR(savings.avoided_ns(0), 0.5e9, 0.1e9);
}

// What was waited is in the time between two reads, and hides nothing.
TEST(Savings, WaitingBetweenReadsIsNotTakenOffTwice) {
  Savings savings;
  savings.enter(0);
  savings.reads_on(1, false, kSecond, {2e9, 0, 0});
  savings.reads_on(1, false, 2 * kSecond, {2e9, 0, kSecond / 2});
  savings.reads_on(1, false, 3 * kSecond, {2e9, 0, kSecond / 2});
  savings.hit({4e9, 0});
  savings.missed({5e8, 0});
  // Of 4.5 s of load 1.5 s would have been hidden, and 0.5 s were waited.
  EXPECT_EQ(savings.avoided_ns(kSecond / 2), 5 * kSecond / 2);
}

// WaitUnion is all zero at first, as in shared memory.
TEST(WaitUnion, OverlapsCountOnce) {
  WaitUnion waits{};
  EXPECT_EQ(waits.add(10, 20), 10U);
  EXPECT_EQ(waits.add(15, 25), 5U);
  EXPECT_EQ(waits.add(15, 25), 0U);
  EXPECT_EQ(waits.add(0, 5), 5U);
  EXPECT_EQ(waits.add(30, 40), 10U);
  EXPECT_EQ(waits.add(0, 50), 50U - 30U);
  EXPECT_EQ(waits.add(50, 50), 0U);
  EXPECT_EQ(waits.add(60, 50), 0U);
}

TEST(WaitUnion, AgreesWithCountingEachMoment) {
  std::mt19937 draw(5);
  for (int round = 0; round < 200; ++round) {
    WaitUnion waits{};
    std::vector<bool> moments(400);
    uint64_t sum = 0;
    for (int i = 0; i < 60; ++i) {  // no more than are recorded apart
      const uint64_t begin = draw() % 350;
      const uint64_t end = begin + 1 + draw() % 20;
      sum += waits.add(begin, end);
      for (uint64_t at = begin; at < end; ++at) moments[at] = true;
    }
    EXPECT_EQ(sum, static_cast<uint64_t>(std::count(moments.begin(), moments.end(), true)));
  }
}

// As they come: in the order of their ends, a long one among many short ones at times.
TEST(WaitUnion, MissesLittleOfLongWaitsAmongShortOnes) {
  std::mt19937 draw(6);
  WaitUnion waits{};
  std::vector<bool> moments(300'000);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {  // far more than are recorded apart
    const uint64_t end = 10'000 + i * 12 + draw() % 6;
    const uint64_t begin = end - (draw() % 50 == 0 ? 400 : 1 + draw() % 5);
    sum += waits.add(begin, end);
    for (uint64_t at = begin; at < end; ++at) moments[at] = true;
  }
  const auto exact = static_cast<uint64_t>(std::count(moments.begin(), moments.end(), true));
  EXPECT_LE(sum, exact);
  EXPECT_GE(sum, exact - exact / 5);
}

TEST(WaitUnion, NeverCountsMoreThanTheTimeThatPassed) {
  std::mt19937 draw(7);
  WaitUnion waits{};
  uint64_t sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t begin = draw() % 100'000;
    sum += waits.add(begin, begin + 1 + draw() % 5);
  }
  EXPECT_LE(sum, 100'005U);
}

}  // namespace
}  // namespace sluice
