// Places that are known roughly, or of files that are not open yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "policy/planner/scheduler.h"
#include "policy/samples/sample_book.h"
#include "tests/unit/records_data.h"

namespace sluice::test {
namespace {

using policy::FileId;
using policy::PlannedRead;
using policy::SampleSet;

TEST(SamplePlaces, PagesAroundAPlaceSayLessThanThePlace) {
  const std::array known{Extent{5000, 3000, FileId{1}}};
  EXPECT_TRUE(is_coarser(std::array{Extent{4096, 4096, FileId{1}}}, known));
  EXPECT_FALSE(is_coarser(std::array{Extent{4100, 4096, FileId{1}}}, known)) << "no pages";
  EXPECT_FALSE(is_coarser(std::array{Extent{4096, 3000, FileId{1}}}, known)) << "not all of it";
  EXPECT_FALSE(is_coarser(std::array{Extent{4096, 4096, FileId{2}}}, known)) << "of another file";
  EXPECT_FALSE(
      is_coarser(std::array{Extent{4096, 4096, FileId{1}}, Extent{65536, 4096, FileId{1}}}, known));
}

TEST(SamplePlaces, WhatWasDeclaredStaysWhereOnlyItsPagesWereSeen) {
  SampleBook book;
  const DatasetId set = book.use(SessionId{1}, "set", 10);
  const auto see = [&](uint64_t index, const Extent& part) {
    book.begin(SessionId{1}, 77, set, index);
    book.part(77, set, index, part);
    book.end(77, set, index);
    return book.parts(set, index)[0];
  };
  const Extent declared{5000, 3000, FileId{1}};
  const Extent pages{4096, 4096, FileId{1}};
  for (const Source source : {Source::kDeclared, Source::kStored}) {
    const uint64_t index = source == Source::kDeclared ? 3 : 4;
    ASSERT_TRUE(book.datasets().locate(SessionId{1}, set, index, {declared}, source));
    EXPECT_EQ(see(index, pages), declared);
    EXPECT_EQ(see(index, {9000, 100, FileId{1}}), (Extent{9000, 100, FileId{1}}))
        << "it is elsewhere now";
  }
  EXPECT_EQ(see(5, pages), pages) << "of this one no more is known";
}

TEST(SamplePlaces, WhatAGuessMadeFinerIsForgottenWithIt) {
  SampleSet set(10);
  set.learn(1, {{4096, 4096, FileId{1}}});
  set.learn(2, {{8192, 4096, FileId{1}}});
  set.refine(1, {{5000, 3000, FileId{1}}});
  set.refine(3, {{5000, 3000, FileId{1}}});  // nothing was seen of it
  EXPECT_EQ(set.parts(1)[0], (Extent{5000, 3000, FileId{1}}));
  EXPECT_EQ(set.known(), 2U);
  set.drop(Source::kGuessed);
  EXPECT_TRUE(set.parts(1).empty());
  EXPECT_EQ(set.known(), 1U);
}

TEST(SamplePlaces, OnlyReadersOfAShuffledDatasetReportPages) {
  SampleBook book;
  const DatasetId set = book.use(SessionId{1}, "set", 100);
  ASSERT_EQ(book.use(SessionId{2}, "set", 100), set);
  book.use(SessionId{3}, "other", 100);
  EXPECT_FALSE(book.orders().lacks_locations(SessionId{1})) << "without an order";
  std::vector<uint32_t> order(100);
  std::iota(order.begin(), order.end(), 0);
  ASSERT_TRUE(book.publish(SessionId{1}, set, 0, 0, order));
  EXPECT_FALSE(book.orders().lacks_locations(SessionId{1})) << "streams see such an order coming";
  for (uint32_t i = 0; i < 100; ++i) order[i] = i * 37 % 100;
  ASSERT_TRUE(book.publish(SessionId{1}, set, 0, 0, order));
  EXPECT_TRUE(book.orders().lacks_locations(SessionId{1}));
  EXPECT_TRUE(book.orders().lacks_locations(SessionId{2})) << "its worker";
  EXPECT_FALSE(book.orders().lacks_locations(SessionId{3}));
  for (uint32_t i = 0; i < 96; ++i)
    book.datasets().locate(SessionId{1}, set, i, {{i * 4096, 4096, FileId{1}}}, Source::kDeclared);
  EXPECT_FALSE(book.orders().lacks_locations(SessionId{1})) << "enough is known";
}

// What was read ahead for samples still to come was taken for unowned when memory was short, and
// dropped: they were read twice.
TEST_F(Records, ASmallBudgetIsFilledAndNothingOfItReadTwice) {
  const std::vector<uint32_t> order = scattered(1000);
  make(kMiB, 64 << 10, 1000, order);
  for (const uint32_t index : order) {
    pump();
    EXPECT_LE(scheduler_.accounts().outstanding(), kMiB);
    read(index);
  }
  EXPECT_EQ(bytes_read(), 1000 * (64ULL << 10));
  EXPECT_EQ(missed_, 0U);
  EXPECT_EQ(metric(SessionMetric::sample_hits), 1000U);
}

// Begun samples are in no order any more, and fill the budget: what is being read stays.
TEST_F(Records, WhatIsBeingReadIsNotDropped) {
  const std::vector<uint32_t> order = scattered(100);
  make(kMiB, 64 << 10, 100, order);
  pump();
  for (uint64_t reader = 0; reader < 8; ++reader) {
    scheduler_.samples().on_sample_begin(SessionId{1},
                                         book_.begin(SessionId{1}, reader, set_, order[reader]));
  }
  pump();
  ASSERT_EQ(scheduler_.accounts().outstanding(), kMiB);
  scheduler_.add_file(FileId{2}, kMiB, 9);  // another job is short of memory meanwhile
  scheduler_.file_usable(FileId{2}, true);
  const DatasetId other = book_.use(SessionId{1}, "other", 1);
  ASSERT_TRUE(
      book_.datasets().locate(SessionId{1}, other, 0, {{0, 4096, FileId{2}}}, Source::kDeclared));
  ASSERT_TRUE(book_.publish(SessionId{1}, other, 0, 0, std::vector<uint32_t>{0}));
  pump();
  EXPECT_EQ(dropped_, 0U);
}

TEST_F(Records, LargeSamplesDoNotFillTheLinkBeyondItsDepth) {
  make(0, 8 * kMiB, 100, scattered(100));
  std::vector<PlannedRead> reads;
  scheduler_.plan(now_, &reads);
  const unsigned depth = scheduler_.queue().model(9)->depth(now_);
  EXPECT_LE(reads.size(), depth - 1 + 8) << "one may go beyond it, whole";
}

TEST_F(Records, WhatOthersTakeIsNotChargedToAJobsOwnBudget) {
  make(0, 256 << 10, 400, scattered(400));
  scheduler_.add_session(SessionId{2}, {}, true, kMiB);
  ASSERT_EQ(book_.use(SessionId{2}, "set", 400), set_);
  std::vector<uint32_t> other = scattered(400);
  std::reverse(other.begin(), other.end());
  ASSERT_TRUE(book_.publish(SessionId{2}, set_, 0, 0, other));
  std::vector<PlannedRead> reads;
  scheduler_.plan(now_, &reads);
  EXPECT_GE(scheduler_.view(SessionId{2}, now_).in_flight, 2U) << "half of a megabyte";
}

TEST_F(Records, WhatABrokenOffEpochLeftMakesRoomForTheNext) {
  const std::vector<uint32_t> order = scattered(10000);
  make(kMiB, 16 << 10, 10000, order);
  pump();
  EXPECT_GE(bytes_read(), kMiB / 2);
  const std::vector<uint32_t> next(order.rbegin(), order.rend());
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 1, 0, next));
  for (const uint32_t index : next) {
    read(index);  // the first of them ends the epoch that was not read
    pump();
    EXPECT_LE(scheduler_.accounts().outstanding(), kMiB);
  }
  EXPECT_GT(metric(SessionMetric::sample_hits), 9900U);
}

TEST_F(Records, ARecordThatNeverFitsDelaysNoOther) {
  make(kMiB, 64 << 10, 100, scattered(100));
  place(0, {0, 2 * kMiB, FileId{1}});  // the first of the order
  pump();
  EXPECT_GE(bytes_read(), kMiB / 4) << "those behind it";
  for (const Range& range : reads_) EXPECT_LT(range.length(), kMiB);
  for (const uint32_t index : scattered(100)) {
    read(index);
    pump();
  }
  EXPECT_EQ(metric(SessionMetric::sample_misses), 1U);
}

TEST_F(Records, NeighboursAreOneRead) {
  make(0, 4096, 64, {});
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 0, std::vector<uint32_t>{10, 40, 11, 9, 20}));
  pump();
  ASSERT_EQ(reads_.size(), 3U);
  EXPECT_EQ(reads_[0].begin, 9 * 4096U) << "the one that the first needs";
  EXPECT_EQ(reads_[0].end, 12 * 4096U);
  EXPECT_EQ(reads_[1].begin, 40 * 4096U);
  EXPECT_EQ(reads_[2].begin, 20 * 4096U);
}

TEST_F(Records, NeighboursThatShareAPageReadItOnce) {
  make(0, 4096, 64, {});
  place(1, {4096, 3000, FileId{1}});
  place(2, {7096, 3000, FileId{1}});
  ASSERT_TRUE(book_.publish(SessionId{1}, set_, 0, 0, std::vector<uint32_t>{2, 1, 30}));
  pump();
  EXPECT_EQ(bytes_read(), 3 * 4096U);
  for (const uint32_t index : {2U, 1U, 30U}) read(index);
  EXPECT_EQ(metric(SessionMetric::sample_hits), 3U);
  EXPECT_EQ(metric(SessionMetric::stall_ns), 0U);
}

TEST_F(Records, WhatIsInMemoryStillIsCountedAsSaved) {
  const std::vector<uint32_t> order = scattered(100);
  make(0, 64 << 10, 100, order);
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(book_.publish(SessionId{1}, set_, epoch, 0, order));
    for (const uint32_t index : order) {
      pump();
      read(index);
    }
    EXPECT_EQ(metric(SessionMetric::kept_bytes), epoch * 100 * (64ULL << 10));
  }
  EXPECT_EQ(bytes_read(), 100 * (64ULL << 10));
}

// The order came while the file was being opened: its first samples were never fetched.
TEST(SamplePlaces, AnOrderThatCameBeforeItsFileWasOpen) {
  World world;
  SampleBook book;
  Scheduler scheduler(&world, &book);
  scheduler.accounts().set_budget(1 << 30);
  scheduler.add_session(SessionId{1}, {}, true, 0);
  scheduler.queue().set(9, 128 << 10, 8);
  scheduler.add_file(FileId{1}, 8 * kMiB, 9);
  const DatasetId set = book.use(SessionId{1}, "set", 8);
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(book.datasets().locate(SessionId{1}, set, i, {{i * kMiB, kMiB, FileId{1}}},
                                       Source::kDeclared));
  }
  ASSERT_TRUE(book.publish(SessionId{1}, set, 0, 0, std::vector<uint32_t>{3, 1, 2, 0, 7, 5, 6, 4}));
  std::vector<PlannedRead> reads;
  scheduler.plan(1000, &reads);
  EXPECT_TRUE(reads.empty());
  world.opening = false;
  scheduler.file_usable(FileId{1}, true);
  scheduler.plan(2000, &reads);
  ASSERT_FALSE(reads.empty());
  EXPECT_EQ(reads.front().range.begin, 3 * kMiB);
}

}  // namespace
}  // namespace sluice::test
