// Which copies come with which.
#include "policy/copies/coming_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::policy {
namespace {

using Files = std::vector<SampleFileId>;

SampleFileId file(uint32_t number) { return SampleFileId{number}; }

Files sorted(StagePlan::Companions others) {
  std::ranges::sort(others.files);
  return others.files;
}

class ComingChunksTest : public testing::Test {
 protected:
  void add(uint32_t first, const Files& others, uint32_t dataset = 1, uint64_t rank = 0) {
    coming.add(job(dataset, rank), file(first), others, true);
  }
  static ComingChunks::Job job(uint32_t dataset = 1, uint64_t rank = 0) {
    return {SessionId{5}, DatasetId{dataset}, rank};
  }
  ComingChunks coming;
};

TEST_F(ComingChunksTest, ComeOnceWithTheFirst) {
  add(1, {file(2), file(3)});
  EXPECT_TRUE(coming.brings(file(1)));
  EXPECT_TRUE(coming.take(file(9)).files.empty());
  const StagePlan::Companions others = coming.take(file(1));
  EXPECT_TRUE(others.package);
  EXPECT_EQ(sorted(others), (Files{file(2), file(3)}));
  EXPECT_TRUE(coming.empty());
  for (const uint32_t any : {1, 2, 3}) EXPECT_TRUE(coming.take(file(any)).files.empty());
}

// Workers read batches in parallel: what the order has later may be read first. It was then fetched
// by itself, and the promise that it comes with a chunk was broken.
TEST_F(ComingChunksTest, ComeWithAnyOfThemThatIsFetchedFirst) {
  add(1, {file(2), file(3)});
  EXPECT_FALSE(coming.brings(file(3))) << "if it has a copy, that does";
  EXPECT_EQ(sorted(coming.take(file(3))), (Files{file(1), file(2)}));
  EXPECT_FALSE(coming.brings(file(1)));
  EXPECT_TRUE(coming.take(file(1)).files.empty());
}

TEST_F(ComingChunksTest, WhatIsReadByItselfBringsNothing) {
  add(1, {file(2)});
  coming.drop(job(1, 7), file(1));
  coming.drop(job(2), file(2));
  EXPECT_TRUE(coming.brings(file(1))) << "of another job";
  coming.drop(job(), file(1));
  EXPECT_TRUE(coming.take(file(2)).files.empty());
  EXPECT_TRUE(coming.empty());
}

TEST_F(ComingChunksTest, TheLastChunkThatNamesAFileHasIt) {
  add(1, {file(2), file(3)});
  add(4, {file(2), file(5)});
  EXPECT_EQ(sorted(coming.take(file(2))), (Files{file(4), file(5)}));
  EXPECT_EQ(sorted(coming.take(file(3))), Files{file(1)}) << "2 came with the other";
  add(1, {file(2)});
  add(1, {file(3)});
  EXPECT_TRUE(coming.take(file(2)).files.empty()) << "replaced";
}

TEST_F(ComingChunksTest, WhatComesAloneIsNotBroughtAndBringsNone) {
  add(1, {file(2), file(3)});
  coming.drop(job(), file(2));
  EXPECT_TRUE(coming.take(file(2)).files.empty());
  EXPECT_EQ(sorted(coming.take(file(1))), Files{file(3)});
}

// The chunk of an epoch that was left would have come with any of its samples in a later one.
TEST_F(ComingChunksTest, AnEpochBeginsWithoutWhatWasDecidedInTheOneBefore) {
  add(1, {file(2)}, 1, 0);
  add(3, {file(4)}, 1, 1);
  coming.begin_epoch(job());
  EXPECT_TRUE(coming.take(file(2)).files.empty());
  EXPECT_EQ(sorted(coming.take(file(4))), (Files{file(3)})) << "another rank's";
  add(1, {file(2)});
  coming.drop_session(SessionId{5});
  EXPECT_TRUE(coming.empty());
}

TEST_F(ComingChunksTest, ADatasetThatIsGoneLeavesNothing) {
  add(1, {file(2)}, 1);
  add(3, {file(4)}, 2);
  coming.drop_dataset(DatasetId{1});
  EXPECT_TRUE(coming.take(file(2)).files.empty());
  EXPECT_EQ(sorted(coming.take(file(4))), (Files{file(3)}));
}

}  // namespace
}  // namespace sluice::policy
