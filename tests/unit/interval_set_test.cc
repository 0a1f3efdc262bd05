// Sets of byte ranges.
#include "policy/util/interval_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sluice::policy {
namespace {

TEST(IntervalSet, AgreesWithABitmap) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    IntervalSet set;
    std::vector<bool> bits(400);
    for (int step = 0; step < 300; ++step) {
      const uint64_t a = random() % 400, b = a + random() % (401 - a);
      const auto before = static_cast<uint64_t>(std::count(
          bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), true));
      ASSERT_EQ(set.covered({a, b}), before);
      if (random() % 2 != 0) {
        ASSERT_EQ(set.add({a, b}), b - a - before);
        std::fill(bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), true);
      } else {
        std::vector<Range> removed;
        ASSERT_EQ(set.remove({a, b}, &removed), before);
        uint64_t sum = 0;
        for (const Range& piece : removed) sum += piece.length();
        ASSERT_EQ(sum, before);
        std::fill(bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), false);
      }
      ASSERT_EQ(set.bytes(), static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true)));
      uint64_t end = UINT64_MAX;  // pieces are disjoint, in order, and never touch
      for (const Range& piece : set.pieces()) {
        ASSERT_LT(piece.begin, piece.end);
        ASSERT_TRUE(end == UINT64_MAX || piece.begin > end);
        end = piece.end;
      }
      uint64_t gap = a;
      while (gap < 400 && bits[gap]) ++gap;
      ASSERT_EQ(set.first_gap(a), gap);
    }
  }
}

TEST(IntervalSet, EmptyRangesAndTheEndsOfTheNumbersDoNoHarm) {
  IntervalSet set;
  EXPECT_EQ(set.add({5, 5}), 0u);
  EXPECT_EQ(set.add({9, 5}), 0u);
  EXPECT_EQ(set.remove({0, UINT64_MAX}), 0u);
  EXPECT_EQ(set.add({UINT64_MAX - 10, UINT64_MAX}), 10u);
  EXPECT_EQ(set.remove({0, UINT64_MAX}), 10u);
  EXPECT_TRUE(set.empty());
}

}  // namespace
}  // namespace sluice::policy
