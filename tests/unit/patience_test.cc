// How long a process waits for an optimizer that does not answer, over hours.
#include "preload/session/patience.h"

#include <gtest/gtest.h>

namespace sluice::test {
namespace {

using preload::Patience;

constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;
constexpr uint64_t kMost = 250 * kMillisecond;

// Asks every `interval` for `duration`; no question is answered. What was waited.
uint64_t wait_in_vain(Patience* patience, uint64_t* now, uint64_t interval, uint64_t duration) {
  uint64_t waited = 0;
  for (const uint64_t end = *now + duration; *now < end; *now += interval) {
    const uint64_t left = patience->left(*now, kMost);
    *now += left;
    waited += left;
    if (left != 0) patience->wasted(*now, left);
  }
  return waited;
}

TEST(Patience, GrowsBackAfterItWasUsedUp) {
  Patience patience;
  uint64_t now = kSecond;
  EXPECT_EQ(patience.left(now, kMost), kMost);
  patience.wasted(now += kMost, kMost);
  patience.wasted(now += kMost, kMost);
  EXPECT_EQ(patience.left(now, kMost), 0U);
  now += 60 * kSecond;
  EXPECT_GE(patience.left(now, kMost), Patience::kLeast);
}

TEST(Patience, AStoppedOptimizerCostsLessThanHalfAPercentForHours) {
  Patience patience;
  uint64_t now = kSecond;
  const uint64_t waited = wait_in_vain(&patience, &now, 100'000, 3600 * kSecond);
  EXPECT_GT(waited, Patience::kMost);
  EXPECT_LT(waited, Patience::kMost + 3600 * kSecond / 200);
}

TEST(Patience, AnOptimizerThatTakesLongIsHeardAgainAfterItWasUsedUp) {
  constexpr uint64_t kTakes = 100 * kMillisecond;
  Patience patience;
  uint64_t now = kSecond;
  patience.wasted(now, Patience::kMost);
  const uint64_t begin = now;
  for (uint64_t left = 0; left < kTakes; now += left + kMillisecond) {
    ASSERT_LT(now - begin, 120 * kSecond) << "every question was given less than it needs";
    left = patience.left(now, kMost);
    if (left != 0 && left < kTakes) patience.wasted(now + left, left);
  }
  patience.answered(now);
  for (int question = 0; question < 1000; ++question, now += kMillisecond) {
    EXPECT_GE(patience.left(now, kMost), kTakes) << "the next one is given as much";
  }
  now += 64 * kSecond;  // the budget is full, and then used up but for some
  patience.left(now, kMost);
  patience.wasted(now, Patience::kMost - Patience::kLeast);
  EXPECT_EQ(patience.left(now, kMost), Patience::kLeast) << "as at the start";
}

TEST(Patience, WaitsThatAreNotCutShortMakeTheNextQuestionWaitNoLonger) {
  Patience patience;
  uint64_t now = kSecond;
  for (int question = 0; question < 2; ++question) patience.wasted(now += kMost, kMost);
  EXPECT_EQ(patience.left(now, kMost), 0U);
  EXPECT_GT(patience.left(now + 6 * kSecond, kMost), 0U);
}

TEST(Patience, TheLastQuestionHasAllThatIsLeft) {
  Patience patience;
  const uint64_t now = kSecond;
  patience.wasted(now, Patience::kMost - Patience::kLeast / 2);
  EXPECT_EQ(patience.left(now, kMost), 0U);
  EXPECT_EQ(patience.rest(now), Patience::kLeast / 2);
}

TEST(Patience, PromptAnswersBringItBackSooner) {
  const auto left_after = [](bool prompt) {
    Patience patience;
    uint64_t now = kSecond;
    patience.wasted(now, Patience::kMost);
    if (prompt) patience.answered(now);
    return patience.left(now + 4 * kSecond, kMost);
  };
  EXPECT_EQ(left_after(false), 0U);
  EXPECT_GT(left_after(true), 100 * kMillisecond);
}

TEST(Patience, LooksInQuickSuccessionLoseNothing) {
  Patience patience;
  uint64_t now = kSecond;
  patience.wasted(now, Patience::kMost);
  for (int i = 0; i < 20'000'000; i += 100) patience.left(now += 100 * 1000, kMost);
  EXPECT_EQ(patience.left(now, kMost), 78'125'000U);
}

TEST(Patience, IsWhatItWasSetTo) {
  Patience patience;
  uint64_t now = kSecond;
  patience.set_most(8 * kSecond);
  EXPECT_EQ(patience.left(now, 4 * kSecond), 4 * kSecond);
  patience.wasted(now += 4 * kSecond, 4 * kSecond);
  EXPECT_EQ(patience.rest(now), 4 * kSecond);
  patience.wasted(now, patience.rest(now));
  now += 3600 * kSecond;
  EXPECT_EQ(patience.rest(now), 8 * kSecond) << "and no more";
}

TEST(Patience, AClockThatIsSetBackIsNoGift) {
  Patience patience;
  patience.wasted(100 * kSecond, Patience::kMost);
  EXPECT_EQ(patience.left(kSecond, kMost), 0U);
}

}  // namespace
}  // namespace sluice::test
