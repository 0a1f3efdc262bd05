// How many files are open ahead of a job.
#include "policy/folders/open_pace.h"

#include <gtest/gtest.h>

namespace sluice::policy {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(OpenPace, AJobThatTakesFilesHasMoreOfThemOpenUpToABound) {
  OpenPace pace;
  EXPECT_EQ(pace.window(), OpenPace::kFirst);
  pace.taken(0, 1);
  EXPECT_EQ(pace.window(), OpenPace::kFirst + 1);
  for (int i = 0; i < 1000; ++i) pace.taken(0, 2);
  EXPECT_EQ(pace.window(), OpenPace::kMost);
}

TEST(OpenPace, FilesThatExpireTogetherCountOnce) {
  OpenPace pace;
  for (int i = 0; i < 100; ++i) pace.expired(10 * kSecond + static_cast<uint64_t>(i));
  EXPECT_EQ(pace.window(), (OpenPace::kFirst + OpenPace::kLeast) / 2);
}

TEST(OpenPace, AJobThatTakesThemLateHasSoManyOpenThatItDoesNot) {
  // It takes 100 a second, in the order in which they were opened.
  OpenPace pace;
  uint64_t now = 100 * kSecond, late = 0;
  for (int i = 0; i < 3000; ++i) {
    now += kSecond / 100;
    const uint64_t held = pace.window() * kSecond / 100;
    late += held > OpenPace::kFreshNs && i > 1000 ? 1 : 0;
    pace.taken(held, now);
  }
  EXPECT_EQ(late, 0U);
  EXPECT_GE(pace.window(), 20U);
}

TEST(OpenPace, AJobThatTakesHardlyAnyHasAFewOpen) {
  OpenPace pace;
  for (uint64_t second = 10; second < 100; second += 4) pace.expired(second * kSecond);
  EXPECT_GE(pace.window(), OpenPace::kLeast);
  EXPECT_LE(pace.window(), OpenPace::kLeast + 1);
}

}  // namespace
}  // namespace sluice::policy
