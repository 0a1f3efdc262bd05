// When a mapped file is read whole, and which bytes then.
#include "policy/planner/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/scheduler_world.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBlock = 512 << 10;
constexpr uint64_t kTensor = 5 * kMiB;
constexpr uint64_t kFile = 100 * kTensor;

class SweepTest : public testing::Test {
 protected:
  // As page tables show it: in steps of 256 KiB.
  void read(uint64_t begin, uint64_t length) {
    for (uint64_t at = begin; at < begin + length; at += kStep) {
      on_read({at, std::min(at + kStep, begin + length)});
    }
  }
  void on_read(Range range) {
    sweep_.on_read(range);
    read_.add(range);
  }
  std::vector<Range> all_of(uint64_t size = kFile) {
    std::vector<Range> out;
    while (const auto piece = sweep_.next(read_, pages_, size, kBlock)) {
      sweep_.start(*piece);
      out.push_back(*piece);
    }
    return out;
  }

  static constexpr uint64_t kStep = 256 << 10;
  Sweep sweep_;
  IntervalSet read_;
  PageLedger pages_;
};

TEST_F(SweepTest, OneRunAfterTheOtherIsNoEvidence) {
  read(0, kFile);
  EXPECT_FALSE(sweep_.wanted());
  EXPECT_FALSE(sweep_.next(read_, pages_, kFile, kBlock));
}

TEST_F(SweepTest, ARanksRowsOfEveryTensorAreNoEvidence) {
  for (uint64_t tensor = 0; tensor < kFile; tensor += kTensor) read(tensor, kTensor / 4);
  EXPECT_FALSE(sweep_.wanted());
}

TEST_F(SweepTest, ReadsOfSmallRecordsAreNoEvidence) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) read(random() % (kFile / kMiB) * kMiB, 100 << 10);
  EXPECT_FALSE(sweep_.wanted());
}

// As the C library copies some large blocks.
TEST_F(SweepTest, OneBlockReadBackwardsIsNoEvidence) {
  for (uint64_t end = 40 * kTensor; end > 0; end -= kStep) on_read({end - kStep, end});
  EXPECT_FALSE(sweep_.wanted());
}

TEST_F(SweepTest, ARunFarBehindTheFurthestIsEvidence) {
  read(90 * kTensor, kTensor);
  EXPECT_FALSE(sweep_.wanted());
  read(10 * kTensor, kTensor);
  EXPECT_TRUE(sweep_.wanted());
}

TEST_F(SweepTest, ThreadsThatTakeTurnsAreEvidence) {
  for (uint64_t at = 0; at < kTensor; at += kStep) {
    for (uint64_t thread = 0; thread < 4; ++thread)
      on_read({thread * kTensor + at, thread * kTensor + at + kStep});
  }
  EXPECT_TRUE(sweep_.wanted());
}

TEST_F(SweepTest, TwoReadersAreNoEvidence) {
  for (uint64_t at = 0; at < 20 * kTensor; at += kStep) {
    for (uint64_t reader = 0; reader < 2; ++reader)
      on_read({reader * 40 * kTensor + at, reader * 40 * kTensor + at + kStep});
  }
  EXPECT_FALSE(sweep_.wanted());
}

TEST_F(SweepTest, IsBoundedByWhatWasRead) {
  read(90 * kTensor, kTensor);
  read(10 * kTensor, kTensor);
  uint64_t swept = 0;
  for (const Range& piece : all_of()) swept += piece.length();
  EXPECT_GE(swept, Sweep::kShare * 2 * kTensor);
  EXPECT_LT(swept, Sweep::kShare * 2 * kTensor + kBlock);
  read(30 * kTensor, kTensor);
  EXPECT_TRUE(sweep_.wanted());
}

TEST_F(SweepTest, GivesEachByteThatIsNotThereOnceInTheFilesOrder) {
  read(90 * kTensor, kTensor);
  read(10 * kTensor, kTensor);
  for (uint64_t tensor = 50; tensor < 80; ++tensor) read(tensor * kTensor, kTensor);
  pages_.on(PageEvent::kReadBegun, {3 * kMiB + 4096, 7 * kMiB + 4096});
  pages_.on(PageEvent::kPrefetched, {9 * kMiB, 9 * kMiB + 4096}, SessionId{1});
  IntervalSet given;
  uint64_t at = 0;
  for (const Range& piece : all_of(kFile - 1000)) {
    EXPECT_GE(piece.begin, at);
    EXPECT_LE(piece.length(), kBlock);
    EXPECT_EQ(given.add(piece), piece.length());
    at = piece.end;
  }
  EXPECT_FALSE(sweep_.next(read_, pages_, kFile - 1000, kBlock));
  IntervalSet rest;
  rest.add({0, kFile - 1000});
  for (const uint64_t tensor : {90, 10}) rest.remove({tensor * kTensor, (tensor + 1) * kTensor});
  rest.remove({50 * kTensor, 80 * kTensor});
  rest.remove({3 * kMiB + 4096, 7 * kMiB + 4096});
  rest.remove({9 * kMiB, 9 * kMiB + 4096});
  EXPECT_EQ(given.pieces(), rest.pieces());
}

// Tensors of a mapped file in a shuffled order: what a stream of each would read comes too late, as
// its reader has left it by then. Returns what the storage was asked for, in bytes.
uint64_t read_shuffled(test::World& world, size_t tensors, size_t read) {
  std::vector<uint64_t> order(tensors);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(3));
  order.resize(read);
  uint64_t asked = 0, time = world.now();
  world.on_read = [&](uint64_t, const PlannedRead& planned) { asked += planned.range.length(); };
  for (const uint64_t tensor : order) {
    for (uint64_t at = tensor * kTensor; at < (tensor + 1) * kTensor; at += 256 << 10) {
      const Range piece{at, at + (256 << 10)};
      time = test::read_mapped(world, piece, 1, time, &asked);
    }
  }
  return asked;
}

TEST(Sweeping, ShuffledTensorsComeAtTheLinksRateEachOnce) {
  constexpr double kRate = 200e6;
  test::World world({0.010, kRate}, kFile);
  world.scheduler.accounts().set_budget(4 * kFile);
  const uint64_t begin = world.now();
  const uint64_t asked = read_shuffled(world, kFile / kTensor, kFile / kTensor);
  const double seconds = static_cast<double>(world.now() - begin) / 1e9;
  EXPECT_LE(seconds, static_cast<double>(kFile) / kRate * 1.08);
  EXPECT_LE(asked, kFile + kFile / 20);
}

TEST(Sweeping, AFileThatDoesNotFitTwiceIsNotReadWhole) {
  test::World world({0.010, 200e6}, kFile);
  world.scheduler.accounts().set_budget(kFile + kFile / 2);
  const uint64_t asked = read_shuffled(world, kFile / kTensor, 10);
  EXPECT_LE(asked, kFile / 2);
}

}  // namespace
}  // namespace sluice::policy
