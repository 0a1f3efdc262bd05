// Which reads of a log are held against the disk: those of what it has been given and not lost.
#include "policy/chunks/log_contents.h"

#include <gtest/gtest.h>

namespace sluice::policy {
namespace {

class LogContentsTest : public ::testing::Test {
 protected:
  void SetUp() override { contents_.reset(10); }
  LogContents::Entry written(SampleId sample, uint32_t log, uint64_t checksum = 7) {
    EXPECT_TRUE(contents_.end(contents_.begin(sample, log, 1), checksum));
    return contents_.find(sample, log).value_or(LogContents::Entry{});
  }
  LogContents contents_;
};

TEST_F(LogContentsTest, WhatIsBeingWrittenIsNotFound) {
  const LogContents::Write write = contents_.begin(3, 1, 99);
  EXPECT_FALSE(contents_.find(3, 1));
  EXPECT_TRUE(contents_.end(write, 7));
  const auto entry = contents_.find(3, 1);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->checksum, 7U);
  EXPECT_EQ(entry->version, 99U);
  EXPECT_TRUE(contents_.stands(3, *entry));
  EXPECT_FALSE(contents_.find(3, 0)) << "in the other log";
}

// A fetch that waited while the epoch turned reads what the log has by then.
TEST_F(LogContentsTest, AClearedLogOwesNothing) {
  const LogContents::Entry before = written(3, 1);
  contents_.clear(1);
  EXPECT_FALSE(contents_.stands(3, before));
  const LogContents::Entry again = written(3, 1);
  EXPECT_FALSE(contents_.stands(3, before)) << "the same bytes, but maybe elsewhere";
  EXPECT_TRUE(contents_.stands(3, again));
}

TEST_F(LogContentsTest, TheOtherLogIsNotClearedWithIt) {
  const LogContents::Entry entry = written(3, 0);
  contents_.clear(1);
  EXPECT_TRUE(contents_.stands(3, entry));
}

TEST_F(LogContentsTest, AWriteThatTheLogWasClearedOrDroppedUnderCountsAsNone) {
  const LogContents::Write cleared = contents_.begin(3, 1, 1), dropped = contents_.begin(4, 0, 1);
  contents_.clear(1);
  contents_.drop(4, 0);
  EXPECT_FALSE(contents_.end(cleared, 7));
  EXPECT_FALSE(contents_.end(dropped, 7));
  EXPECT_FALSE(contents_.find(3, 1));
  EXPECT_FALSE(contents_.find(4, 0));
}

// The file changed, and changed again: the first write's bytes are being written over.
TEST_F(LogContentsTest, OnlyTheLastOfSeveralWritesCounts) {
  const LogContents::Entry before = written(3, 1);
  const LogContents::Write first = contents_.begin(3, 1, 2), second = contents_.begin(3, 1, 3);
  EXPECT_FALSE(contents_.stands(3, before));
  EXPECT_FALSE(contents_.end(first, 8));
  EXPECT_TRUE(contents_.end(second, 9));
  EXPECT_EQ(contents_.find(3, 1)->version, 3U);
}

TEST_F(LogContentsTest, AnotherJobsEntriesAreNotThisOnes) {
  const LogContents::Entry before = written(3, 1);
  contents_.reset(5);
  EXPECT_FALSE(contents_.stands(3, before));
  EXPECT_FALSE(contents_.stands(8, before)) << "it has no such sample";
}

}  // namespace
}  // namespace sluice::policy
