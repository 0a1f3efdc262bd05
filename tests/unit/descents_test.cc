// What is read from its end to its begin, and what follows.
#include "policy/streams/descents.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr uint64_t kStep = 512 * kKiB;

class DescentsTest : public testing::Test {
 protected:
  // As page tables show it. How many steps were of a descent.
  unsigned backwards(uint64_t begin, uint64_t end, uint64_t step = kStep) {
    unsigned of_descent = 0;
    while (end > begin) {
      const uint64_t next = end - std::min(step, end - begin);
      of_descent += descents_.on_read({next, end}) ? 1 : 0;
      end = next;
    }
    return of_descent;
  }
  void forwards(uint64_t begin, uint64_t end) {
    for (; begin < end; begin += kStep) {
      EXPECT_FALSE(descents_.on_read({begin, std::min(end, begin + kStep)}));
    }
  }
  uint64_t bytes(uint64_t most = 1ULL << 40) const {
    uint64_t out = 0;
    for (const Range& range : descents_.expected(most)) out += range.length();
    return out;
  }

  Descents descents_;
};

TEST_F(DescentsTest, WhatIsReadForwardsIsNone) {
  forwards(0, 40 * kMiB);
  EXPECT_FALSE(descents_.active());
  forwards(100 * kMiB, 140 * kMiB);
  forwards(0, 40 * kMiB);
  EXPECT_FALSE(descents_.active());
  EXPECT_EQ(bytes(), 0);
}

TEST_F(DescentsTest, PlacesAtRandomAreNone) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t at = random() % (16ULL << 30) / 4096 * 4096;
    EXPECT_FALSE(descents_.on_read({at, at + 64 * kKiB}));
  }
  EXPECT_FALSE(descents_.active());
}

TEST_F(DescentsTest, IsTrustedByWhatWasReadOfIt) {
  EXPECT_EQ(backwards(998 * kMiB, 1000 * kMiB), 1);
  EXPECT_TRUE(descents_.active());
  const auto expected = descents_.expected(1ULL << 40);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(expected.front().end, 998 * kMiB);
  EXPECT_EQ(bytes(), 8 * kMiB);
  for (size_t i = 1; i < expected.size(); ++i) EXPECT_EQ(expected[i].end, expected[i - 1].begin);
  EXPECT_EQ(bytes(3 * kMiB), 3 * kMiB);
  backwards(600 * kMiB, 998 * kMiB);
  EXPECT_EQ(bytes(), 16 * kMiB + 200 * kMiB);
  backwards(100 * kKiB, 600 * kMiB);
  EXPECT_EQ(bytes(), 100 * kKiB);
  backwards(0, 100 * kKiB);
  EXPECT_EQ(bytes(), 0);
}

TEST_F(DescentsTest, OneAfterTheOtherAreKnownToTheirEnds) {
  constexpr uint64_t kTensor = 20 * kMiB;
  for (uint64_t tensor = 0; tensor < 3; ++tensor) {
    backwards(tensor * kTensor, (tensor + 1) * kTensor);
  }
  // The next one's end is not known, but that its bytes follow.
  EXPECT_EQ(descents_.expected(1ULL << 40), (std::vector<Range>{{3 * kTensor, 4 * kTensor}}));
  EXPECT_FALSE(descents_.on_read({4 * kTensor - kStep, 4 * kTensor}));
  EXPECT_TRUE(descents_.active());
  const auto expected = descents_.expected(1ULL << 40);
  EXPECT_EQ(expected.front(), (Range{4 * kTensor - kMiB, 4 * kTensor - kStep}));
  EXPECT_EQ(bytes(), kTensor - kStep + kTensor);
  EXPECT_EQ(bytes(5 * kMiB), 5 * kMiB);
}

TEST_F(DescentsTest, EndsWhereReadersGoOnElsewhere) {
  backwards(80 * kMiB, 100 * kMiB);
  EXPECT_TRUE(descents_.active());
  forwards(200 * kMiB, 220 * kMiB);
  EXPECT_FALSE(descents_.active());
}

// After its last page, what was copied is read again, from its begin.
TEST_F(DescentsTest, WhatIsReadAgainIsNone) {
  backwards(80 * kMiB, 100 * kMiB);
  forwards(80 * kMiB, 100 * kMiB);
  EXPECT_FALSE(descents_.active());
}

}  // namespace
}  // namespace sluice::policy
