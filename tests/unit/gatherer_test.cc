// Reads that wait for others beside them.
#include "policy/planner/gatherer.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::test {
namespace {

using policy::FileId;
using policy::Gatherer;
using policy::Range;
using policy::SessionId;
using policy::WaitingRead;
using policy::WantedExtent;

class Waiting : public ::testing::Test {
 protected:
  void add(uint64_t page, FileId file = FileId{1}, SessionId session = SessionId{1}) {
    WantedExtent wanted;
    wanted.extent = {page * 4096, 4096, file};
    wanted.session = session;
    wanted.sample = static_cast<uint32_t>(page);
    waiting_.add(wanted, {page * 4096, (page + 1) * 4096});
  }
  // Pages of the next read, in the order in which they were taken.
  std::vector<uint32_t> take(uint64_t gap = 2, uint64_t longest = 16) {
    std::vector<uint32_t> pages;
    for (const WaitingRead& read : waiting_.take(
             longest * 4096,
             [&](const WaitingRead&, Range between) { return between.length() <= gap * 4096; },
             [this](const WantedExtent& wanted) { return wanted.sample != unwanted_; }, &gone_)) {
      pages.push_back(read.wanted.sample);
    }
    return pages;
  }
  using Pages = std::vector<uint32_t>;

  Gatherer waiting_;
  std::vector<WaitingRead> gone_;
  uint32_t unwanted_ = UINT32_MAX;
};

TEST_F(Waiting, TheOldestIsReadWithItsNeighbours) {
  for (const uint64_t page : {50, 10, 53, 47, 60, 46}) add(page);
  EXPECT_EQ(waiting_.bytes(), 6 * 4096U);
  EXPECT_EQ(take(), (Pages{50, 53, 47, 46}));
  EXPECT_EQ(take(), (Pages{10}));
  EXPECT_EQ(take(), (Pages{60}));
  EXPECT_TRUE(take().empty());
  EXPECT_TRUE(waiting_.empty());
  EXPECT_EQ(waiting_.bytes(), 0U);
}

TEST_F(Waiting, AReadIsNoLongerThanOneRequest) {
  for (uint64_t page = 0; page < 40; ++page) add(page);
  EXPECT_EQ(take().size(), 16U);
  EXPECT_EQ(take().size(), 16U);
  EXPECT_EQ(take().size(), 8U);
}

TEST_F(Waiting, OthersFilesAndSessionsAreOtherReads) {
  add(5);
  add(6, FileId{2});
  add(6, FileId{1}, SessionId{2});
  add(7);  // the other session's lies between
  EXPECT_EQ(take(), (Pages{5, 7}));
  waiting_.remove_file(FileId{2}, &gone_);
  EXPECT_EQ(gone_.size(), 1U);
  waiting_.remove_session(SessionId{2}, &gone_);
  EXPECT_EQ(gone_.size(), 2U);
  EXPECT_TRUE(waiting_.empty());
}

TEST_F(Waiting, WhatIsNotWantedAnyMoreIsNotRead) {
  for (const uint64_t page : {5, 6, 7}) add(page);
  unwanted_ = 6;
  EXPECT_EQ(take(), (Pages{5, 7}));
  add(6);
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(gone_.size(), 2U);
}

}  // namespace
}  // namespace sluice::test
