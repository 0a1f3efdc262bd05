// When a dataset is found not to be read from its copies.
#include "policy/planner/uptake.h"

#include <gtest/gtest.h>

namespace sluice::policy {
namespace {

constexpr uint64_t kReader = 7;
constexpr DatasetId kDataset{3};
constexpr uint64_t kStorage = 10'000'000;  // ns

class UptakeTest : public testing::Test {
 protected:
  Uptake::Verdict sample(bool offered, uint64_t took_ns, uint64_t given = 0, uint64_t left = 0) {
    uptake.begun(kReader, kDataset, index, offered, now);
    now += took_ns;
    return uptake.ended(kReader, kDataset, index++, {given, left, now, kStorage});
  }

  Uptake uptake;
  uint64_t index = 0, now = 1'000'000'000;
};

TEST_F(UptakeTest, CopiesThatAreNeverOpenedAreUseless) {
  for (uint64_t i = 0; i < Uptake::kEnough; ++i) {
    EXPECT_FALSE(uptake.needs_originals(kDataset)) << i;
    EXPECT_EQ(sample(true, kStorage), Uptake::Verdict::kOriginal);
  }
  EXPECT_TRUE(uptake.needs_originals(kDataset));
  EXPECT_FALSE(uptake.needs_originals(DatasetId{number(kDataset) + 1}));
  uptake.remove(kDataset);
  EXPECT_FALSE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, BatchesReadWithOneCallCountOnce) {
  for (int batch = 0; batch < 100; ++batch) {
    for (uint64_t i = 0; i < 10; ++i) uptake.begun(kReader, kDataset, i, true, now);
    now += 10 * kStorage;
    for (uint64_t i = 0; i < 10; ++i) {
      const auto verdict = uptake.ended(kReader, kDataset, i, {i == 0 ? 10U : 0, 0, now, kStorage});
      EXPECT_EQ(verdict, i == 0 ? Uptake::Verdict::kUsed : Uptake::Verdict::kNothing) << i;
    }
  }
  EXPECT_FALSE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, CopiesThatAreGivenBackAreOfNoUse) {
  for (uint64_t i = 0; i < Uptake::kEnough; ++i) sample(true, kStorage, 1, 1);
  EXPECT_TRUE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, GivenBackWhenTheWindowEnds) {
  for (int batch = 0; batch < 3; ++batch) {
    for (uint64_t i = 0; i < 64; ++i) {
      sample(true, 1000, 1, i == 0 && batch > 0 ? 64 : 0);
    }
  }
  EXPECT_TRUE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, SomeThatAreGivenBackAreNot) {
  for (int batch = 0; batch < 20; ++batch) {
    for (uint64_t i = 0; i < 512; ++i) sample(true, 1000, 1, i == 0 && batch > 0 ? 64 : 0);
  }
  EXPECT_FALSE(uptake.needs_originals(kDataset)) << "an eighth of them";
}

TEST_F(UptakeTest, CopiesThatAreReadStay) {
  for (uint64_t i = 0; i < 10 * Uptake::kEnough; ++i) {
    EXPECT_EQ(sample(true, 1000, 1), Uptake::Verdict::kUsed);
  }
  EXPECT_FALSE(uptake.needs_originals(kDataset));
}

// A job that only reads the samples' numbers and opens no file of theirs would have cost all their
// copies.
TEST_F(UptakeTest, ASampleThatReadsNothingSaysNothing) {
  for (uint64_t i = 0; i < 10 * Uptake::kEnough; ++i) {
    EXPECT_EQ(sample(true, 1000), Uptake::Verdict::kNothing);
  }
  EXPECT_FALSE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, ASampleWithoutCopiesSaysNothing) {
  for (uint64_t i = 0; i < 10 * Uptake::kEnough; ++i) {
    EXPECT_EQ(sample(false, kStorage), Uptake::Verdict::kNothing);
  }
  EXPECT_FALSE(uptake.needs_originals(kDataset));
}

TEST_F(UptakeTest, EndsThatMakeNoSense) {
  EXPECT_EQ(uptake.ended(kReader, kDataset, 5, {0, 0, now, kStorage}), Uptake::Verdict::kNothing);
  uptake.begun(kReader, kDataset, 1, true, now);
  EXPECT_EQ(uptake.ended(kReader, kDataset, 2, {0, 0, now + kStorage, kStorage}),
            Uptake::Verdict::kNothing);
  EXPECT_EQ(sample(true, 0, UINT64_MAX, UINT64_MAX), Uptake::Verdict::kOriginal);
  uptake.begun(kReader, kDataset, 9, true, now);
  EXPECT_EQ(uptake.ended(kReader, kDataset, 9, {0, 0, now - kStorage, kStorage}),
            Uptake::Verdict::kNothing);
  for (uint64_t reader = 0; reader < 3 * Uptake::kMostOpen; ++reader) {
    uptake.begun(reader, kDataset, 1, true, now);
  }
}

}  // namespace
}  // namespace sluice::policy
