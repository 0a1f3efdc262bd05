// Which ranges of a log are given back to the file system, and when.
#include "policy/chunks/released_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace sluice::policy {
namespace {

constexpr uint64_t kBlock = LogIndex::kBlock;
constexpr uint64_t kMuch = uint64_t{1} << 40;

// As an epoch reads that has the order of its log, workers a little out of it.
TEST(ReleasedRanges, NothingIsGivenBackBeforeItsRoomIsNeeded) {
  ReleasedRanges released;
  constexpr uint64_t kEach = 4 * kBlock, kMost = 64 << 20;
  size_t given = 0;
  for (uint64_t at = 0; at < 8192; ++at) {
    const LogRange range{(at ^ 5) * kEach, kEach};
    released.add({&range, 1});
    const std::vector<LogRange> now = released.take(kMost);
    EXPECT_TRUE(now.empty() || at * kEach >= kMost - kEach);
    for (const LogRange& one : now) EXPECT_GE(one.length, ReleasedRanges::kLarge);
    given += now.size();
    EXPECT_LE(released.bytes(), kMost);
  }
  EXPECT_GT(given, 0U);
  EXPECT_LT(given, 300U) << "neighbours are given back one by one";
}

TEST(ReleasedRanges, LargeRangesAreGivenBackFirst) {
  ReleasedRanges released;
  for (uint64_t at = 0; at < 3000; ++at) {
    const LogRange range{at * 20 * kBlock, kBlock};
    released.add({&range, 1});
  }
  const LogRange large{uint64_t{1} << 40, 16 << 20};
  released.add({&large, 1});
  EXPECT_EQ(released.take(20 << 20), (std::vector<LogRange>{large}));
  EXPECT_EQ(released.bytes(), 3000 * kBlock);
  EXPECT_EQ(released.take(0).size(), 3000U);
  EXPECT_EQ(released.bytes(), 0U);
}

// A block that two samples share was released with one of them, then the other one is written.
TEST(ReleasedRanges, WhatIsWrittenAgainIsNotGivenBack) {
  ReleasedRanges released;
  const std::vector<LogRange> ranges = {{0, 4 * kBlock}, {10 * kBlock, kBlock}};
  released.add(ranges);
  released.reclaim({kBlock, kBlock});
  released.reclaim({3 * kBlock, 8 * kBlock});
  EXPECT_EQ(released.bytes(), 2 * kBlock);
  released.reclaim({20 * kBlock, kBlock});
  EXPECT_EQ(released.take(0), (std::vector<LogRange>{{0, kBlock}, {2 * kBlock, kBlock}}));
  EXPECT_EQ(released.bytes(), 0U);
}

TEST(ReleasedRanges, EveryBlockIsGivenBackOnce) {
  std::mt19937 draw(3);
  std::vector<uint64_t> blocks(5000);
  for (uint64_t at = 0; at < blocks.size(); ++at) blocks[at] = at;
  std::shuffle(blocks.begin(), blocks.end(), draw);
  ReleasedRanges released;
  std::vector<int> given(blocks.size());
  const auto take = [&](uint64_t most) {
    for (const LogRange& range : released.take(most)) {
      for (uint64_t at = 0; at < range.length; at += kBlock) ++given[(range.offset + at) / kBlock];
    }
    EXPECT_LE(released.bytes(), most);
  };
  for (const uint64_t block : blocks) {
    const LogRange range{block * kBlock, kBlock};
    released.add({&range, 1});
    take(draw() % 3 == 0 ? draw() % (2 << 20) : kMuch);
  }
  take(0);
  EXPECT_TRUE(std::ranges::all_of(given, [](int times) { return times == 1; }));
}

}  // namespace
}  // namespace sluice::policy
