// Readers that leave out parts of a file: which runs they are expected to read next, and what is
// read ahead of them.
#include "policy/streams/strides.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/streams/coverage.h"
#include "tests/unit/scheduler_world.h"

namespace sluice::policy {
namespace {

using test::kKiB;
using test::kMiB;

constexpr uint64_t kWindow = 64 << 10;  // of pages that one fault maps

// A model's layers as one rank of four reads them: a quarter of each matrix, and two vectors.
struct Layers {
  static constexpr uint64_t kMatrices[] = {4608, 4608, 4608, 4608, 12288, 12288, 12288};  // KiB
  static constexpr uint64_t kVectors = 6 * kKiB;
  static constexpr uint64_t kHeader = 41 * kKiB;

  explicit Layers(size_t count) {
    uint64_t at = kHeader;
    for (size_t layer = 0; layer < count; ++layer) {
      for (const uint64_t kib : kMatrices) {
        const uint64_t quarter = kib * kKiB / 4;
        runs.push_back({at + quarter, at + 2 * quarter});
        at += kib * kKiB;
      }
      runs.push_back({at, at + kVectors});
      at += kVectors;
    }
    size = at;
  }
  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Range& run : runs) sum += run.length();
    return sum;
  }

  std::vector<Range> runs;
  uint64_t size = 0;
};

class StridesTest : public testing::Test {
 protected:
  // As a page table shows it: `threads` threads share the run, in steps of 128 KiB; each end is
  // blurred by what the fault there has mapped beside it.
  void read(Range run, uint64_t threads = 1) {
    const uint64_t part = (run.length() / threads + 4095) / 4096 * 4096;
    for (uint64_t at = 0; at < part; at += kStep) {
      for (uint64_t thread = 0; thread < threads; ++thread) {
        const uint64_t begin = run.begin + thread * part + at;
        const uint64_t end = std::min({begin + kStep, run.begin + (thread + 1) * part, run.end});
        if (begin >= end) continue;
        time_ += 1'000'000;
        strides_.on_read({begin / kWindow * kWindow, (end + kWindow - 1) / kWindow * kWindow},
                         time_);
      }
    }
  }
  IntervalSet expected(uint64_t most = 64 * kMiB) const {
    IntervalSet out;
    for (const Range& range : strides_.expected(most)) out.add(range);
    return out;
  }
  // Bytes of the runs that were not expected when the run before them had been read.
  uint64_t surprising(const std::vector<Range>& runs, size_t from, uint64_t threads) {
    uint64_t sum = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      if (i >= from) sum += runs[i].length() - expected().covered(runs[i]);
      read(runs[i], threads);
    }
    return sum;
  }

  static constexpr uint64_t kStep = 128 * kKiB;
  Strides strides_;
  uint64_t time_ = 1;
};

TEST_F(StridesTest, TheRowsOfLaterLayersAreExpected) {
  const Layers layers(30);
  EXPECT_LE(surprising(layers.runs, 2 * 8, 1), layers.bytes() / 100);
}

TEST_F(StridesTest, ThreadsMayShareEachRun) {
  const Layers layers(30);
  EXPECT_LE(surprising(layers.runs, 2 * 8, 2), layers.bytes() / 100);
}

TEST_F(StridesTest, LittleMoreThanTheRowsIsExpected) {
  const Layers layers(30);
  IntervalSet all;
  for (size_t i = 0; i < layers.runs.size(); ++i) {
    if (i >= 2 * 8) {
      for (const Range& range : strides_.expected(64 * kMiB)) all.add(range);
    }
    read(layers.runs[i]);
  }
  EXPECT_LE(all.covered({0, layers.size}), layers.bytes() * 5 / 4);
}

TEST_F(StridesTest, AsManyRunsAreExpectedAsWereRepeated) {
  for (uint64_t i = 0; i < 4; ++i) {
    read({i * 8 * kMiB, i * 8 * kMiB + kMiB});
    EXPECT_EQ(strides_.predicted(), i >= 2) << i;
  }
  // Two strides were as the first one.
  EXPECT_EQ(strides_.expected(64 * kMiB).size(), 1 + 2 * 2U);
  EXPECT_LE(expected(2 * kMiB).bytes(), 2 * kMiB);
}

TEST_F(StridesTest, ARunThatDiffersEndsThePrediction) {
  for (uint64_t i = 0; i < 6; ++i) read({i * 8 * kMiB, i * 8 * kMiB + kMiB});
  ASSERT_TRUE(strides_.predicted());
  EXPECT_FALSE(strides_.on_read({53 * kMiB, 54 * kMiB}, ++time_));
  EXPECT_FALSE(strides_.predicted());
}

TEST_F(StridesTest, ARunThatGoesOnEndsThePrediction) {
  for (uint64_t i = 0; i < 6; ++i) read({i * 8 * kMiB, i * 8 * kMiB + kMiB});
  EXPECT_FALSE(strides_.on_read({41 * kMiB, 42 * kMiB}, ++time_));
  EXPECT_FALSE(strides_.predicted());
}

TEST_F(StridesTest, ASmallRunThatIsSeenLateChangesNothing) {
  const Layers layers(6);
  for (size_t i = 0; i < layers.runs.size(); ++i) {
    const bool vectors = i % 8 == 7;
    if (vectors && i / 8 == 4) continue;
    read(layers.runs[i]);
    if (i == 5 * 8) read(layers.runs[i - 1]);
    EXPECT_TRUE(i < 3 * 8 || strides_.predicted()) << i;
  }
}

TEST_F(StridesTest, OfRunsAtRandomNoMoreIsExpectedThanIsUsual) {
  std::mt19937_64 random(2);
  uint64_t at = 0, needless = 0, needed = 0;
  for (int i = 0; i < 400; ++i) {
    at += (1 + random() % 64) * 300 * kKiB;
    const Range run{at, at + (1 + random() % 8) * 256 * kKiB};
    at = run.end;
    read(run);
    needed += run.length();
    if (i < 10) continue;
    IntervalSet beyond = expected();
    needless += beyond.bytes() - beyond.covered({0, run.end});
  }
  EXPECT_LE(needless, needed);
}

class CoverageTest : public testing::Test {
 protected:
  void read(uint64_t begin, uint64_t length) {
    const uint64_t jumped = begin - std::min(begin, position_);
    coverage_.add({begin, begin + length});
    position_ = std::max(position_, begin + length);
    coverage_.judge({0, position_}, jumped, worth_);
  }
  Coverage coverage_;
  uint64_t position_ = 0, worth_ = 0;
};

TEST_F(CoverageTest, ReadersThatTakeTurnsLeaveNoHoles) {
  for (uint64_t pair = 0; pair < 40; ++pair) {
    read((2 * pair + 1) * kMiB, kMiB);
    read(2 * pair * kMiB, kMiB);
  }
  EXPECT_FALSE(coverage_.holes());
}

TEST_F(CoverageTest, AQuarterOfEachTensorLeavesHoles) {
  for (uint64_t tensor = 0; tensor < 10; ++tensor) read(tensor * 4 * kMiB, kMiB);
  EXPECT_TRUE(coverage_.holes());
}

TEST_F(CoverageTest, HolesThatAreFilledAreNone) {
  for (uint64_t tensor = 0; tensor < 10; ++tensor) read(tensor * 4 * kMiB, kMiB);
  for (uint64_t part = 1; part < 4; ++part) {
    for (uint64_t tensor = 0; tensor < 10; ++tensor) read((tensor * 4 + part) * kMiB, kMiB);
  }
  read(40 * kMiB, 2 * kMiB);
  EXPECT_FALSE(coverage_.holes());
}

TEST_F(CoverageTest, GapsThatCostLessThanARequestAreRead) {
  worth_ = 2 * kMiB;
  for (uint64_t part = 0; part < 30; ++part) read(part * 5 * kMiB / 2, kMiB);
  EXPECT_FALSE(coverage_.holes());
}

TEST_F(CoverageTest, GivesWhatWasNotReadBefore) {
  coverage_.add({kMiB, 2 * kMiB});
  EXPECT_EQ(coverage_.add({0, 3 * kMiB}), (std::vector<Range>{{0, kMiB}, {2 * kMiB, 3 * kMiB}}));
  EXPECT_TRUE(coverage_.not_read({0, 3 * kMiB}).empty());
}

// Ranks of a tensor-parallel job read their quarters of the file's tensors side by side. Returns
// what the storage was asked for, in bytes.
uint64_t read_as_ranks(test::World& world, uint64_t tensor, const std::vector<uint64_t>& ranks) {
  uint64_t asked = 0, time = world.now();
  world.on_read = [&](uint64_t, const PlannedRead& planned) { asked += planned.range.length(); };
  for (uint64_t begin = 0; begin < test::kMiB * 1024; begin += tensor) {
    for (uint64_t at = 0; at < tensor / 4; at += 256 * kKiB) {
      for (const uint64_t rank : ranks) {
        const uint64_t from = begin + rank * tensor / 4 + at;
        const Range piece{from, from + 256 * kKiB};
        time = test::read_mapped(world, piece, rank + 1, time, &asked);
      }
    }
  }
  return asked;
}

constexpr uint64_t kTensor = 8 * kMiB;
constexpr uint64_t kSize = 1024 * kMiB;

TEST(StridedReaders, ARankThatReadsItsRowsAloneReadsNoOthers) {
  test::World world({0.010, 200e6}, kSize);
  const uint64_t begin = world.now();
  EXPECT_LE(read_as_ranks(world, kTensor, {1}), kSize / 4 * 23 / 20);
  const double seconds = static_cast<double>(world.now() - begin) / 1e9;
  EXPECT_LE(seconds, static_cast<double>(kSize) / 4 / 200e6 * 1.25);
  const uint64_t hits =
      test::metric(world, SessionId{1}, protocol::SessionMetric::precached_used_bytes);
  EXPECT_GE(hits, kSize / 4 * 9 / 10);
  EXPECT_LE(hits, kSize / 4);
}

TEST(StridedReaders, TwoRanksOfFourReadHalf) {
  test::World world({0.010, 200e6}, kSize);
  EXPECT_LE(read_as_ranks(world, kTensor, {0, 2}), kSize / 2 * 23 / 20);
}

TEST(StridedReaders, FourRanksReadAllOnce) {
  test::World world({0.010, 200e6}, kSize);
  const uint64_t begin = world.now();
  EXPECT_LE(read_as_ranks(world, kTensor, {0, 1, 2, 3}), kSize + kSize / 20);
  const double seconds = static_cast<double>(world.now() - begin) / 1e9;
  EXPECT_LE(seconds, static_cast<double>(kSize) / 200e6 * 1.08);
}

TEST(StridedReaders, NothingIsHeldThatNobodyReads) {
  test::World world({0.0005, 200e6}, kSize);
  read_as_ranks(world, kTensor, {1});
  EXPECT_LE(world.scheduler.accounts().outstanding(), 64 * kMiB);
}

}  // namespace
}  // namespace sluice::policy
