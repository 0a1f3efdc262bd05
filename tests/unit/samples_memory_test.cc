// What samples and orders may take of memory, and which datasets give way.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using policy::BegunSamples;
using policy::DatasetId;
using policy::Datasets;
using policy::Extent;
using policy::FileId;
using policy::SampleBook;
using policy::SampleOrder;
using policy::SampleSet;
using policy::SessionId;
using policy::Source;

constexpr uint64_t kHuge = uint64_t{1} << 32;

std::vector<uint32_t> counted(uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Everything that has to give way does, as the optimizer lets it.
size_t settle(SampleBook* book, uint64_t more = 0) {
  size_t gone = 0;
  while (const auto surplus = book->surplus(more)) {
    book->release(*surplus);
    ++gone;
  }
  return gone;
}

TEST(SampleMemory, ASparseSetTakesWhatIsKnownNotWhatIsNumbered) {
  SampleSet set(kHuge);
  constexpr uint64_t kKnown = 10000;
  for (uint64_t i = 0; i < kKnown; ++i) set.learn(i * 429496, {{i, 7, FileId{1}}});
  set.learn(kHuge - 1, {{9, 7, FileId{1}}});
  EXPECT_EQ(set.known(), kKnown + 1);
  EXPECT_EQ(set.reach(), kHuge);
  EXPECT_LT(set.held(), kKnown * 160);
  EXPECT_EQ(set.parts(kHuge - 1)[0], (Extent{9, 7, FileId{1}}));
  EXPECT_EQ(set.parts(5000ULL * 429496)[0], (Extent{5000, 7, FileId{1}}));
  EXPECT_TRUE(set.parts(5000ULL * 429496 + 1).empty());
}

TEST(SampleMemory, ADenseSetTakesLittleMoreThanItsExtents) {
  constexpr uint64_t kKnown = 1 << 17;
  SampleSet set(kKnown);
  for (uint64_t i = 0; i < kKnown; ++i) set.learn((i * 40503) % kKnown, {{i, 7, FileId{1}}});
  EXPECT_EQ(set.known(), kKnown);
  EXPECT_LT(set.held(), kKnown * 20);
  uint64_t next = 0;
  set.for_each_known([&](uint64_t index) { return index == next++; });
  EXPECT_EQ(next, kKnown);
  for (uint64_t i = 0; i < kKnown; ++i) set.learn(i, {});
  EXPECT_EQ(set.known(), 0U);
  EXPECT_EQ(set.held(), 0U);
}

TEST(SampleMemory, WhatIsHeldIsCountedThroughAllChanges) {
  SampleSet set(1000);
  const std::vector<Extent> many = {{0, 1, FileId{1}}, {10, 1, FileId{1}}, {20, 1, FileId{1}}};
  set.learn(1, many, Source::kGuessed);
  set.learn(2, {{0, 1, FileId{1}}}, Source::kGuessed);
  set.refine(1, {{5, 1, FileId{1}}});
  set.learn(500, many);
  set.learn(500, {{1, 1, FileId{1}}});
  set.learn(500, {});
  set.drop(Source::kGuessed);
  EXPECT_EQ(set.held(), 0U);
  EXPECT_EQ(set.known(), 0U);
}

TEST(SampleMemory, NothingIsLearnedBeyondTheLimit) {
  SampleBook book;
  book.set_most_bytes(1 << 20);
  const DatasetId set = book.use(SessionId{1}, "set", kHuge);
  for (uint64_t i = 0; i < 100000; ++i)
    book.datasets().locate(SessionId{1}, set, i * 1000, {{0, 1, FileId{1}}}, Source::kDeclared);
  EXPECT_LE(book.memory().held, (1U << 20) + 200);
  EXPECT_GT(book.set(set)->known(), 1000U);
  const DatasetId other = book.use(SessionId{1}, "other", 10);
  // It alone does not fit: it is not followed any more, and others are.
  EXPECT_EQ(settle(&book), 1U);
  EXPECT_EQ(book.memory().held, 0U);
  EXPECT_FALSE(
      book.datasets().locate(SessionId{1}, set, 1, {{0, 1, FileId{1}}}, Source::kDeclared));
  EXPECT_FALSE(book.publish(SessionId{1}, set, 1, 0, counted(5)));
  EXPECT_TRUE(
      book.datasets().locate(SessionId{1}, other, 1, {{0, 1, FileId{1}}}, Source::kDeclared));
  EXPECT_TRUE(book.publish(SessionId{1}, other, 1, 0, counted(5)));
  EXPECT_EQ(book.set(other)->known(), 1U);
}

TEST(SampleMemory, OrdersCount) {
  SampleBook book;
  book.set_most_bytes(1 << 20);
  const DatasetId set = book.use(SessionId{1}, "set", 1 << 30);
  EXPECT_FALSE(book.publish(SessionId{1}, set, 1, 0, counted(200000)));
  EXPECT_TRUE(book.publish(SessionId{1}, set, 1, 0, counted(100000)));
  EXPECT_FALSE(book.publish(SessionId{1}, set, 2, 0, counted(100000)));
  EXPECT_EQ(book.memory().held, 100000 * SampleOrder::kPositionBytes);
  book.orders().remove(SessionId{1}, set);
  EXPECT_EQ(book.memory().held, 0U);
}

TEST(SampleMemory, ADatasetInUseGivesWayOnlyToWhatTakesLess) {
  SampleBook book;
  book.set_most_bytes(1 << 20);
  const DatasetId honest = book.use(SessionId{1}, "honest", 1000);
  ASSERT_TRUE(book.publish(SessionId{1}, honest, 1, 0, counted(1000)));
  for (const uint32_t positions : {116000U, 1U << 20}) {
    const DatasetId greedy = book.use(SessionId{2}, "greedy", 1 << 30);
    EXPECT_EQ(settle(&book, positions * SampleOrder::kPositionBytes), 0U);
    EXPECT_FALSE(book.publish(SessionId{2}, greedy, 1, 0, counted(positions)));
    book.leave(SessionId{2});
  }
  EXPECT_TRUE(book.publish(SessionId{1}, honest, 2, 0, counted(1000)));
}

TEST(SampleMemory, OldDatasetsGiveWayToNewOnes) {
  SampleBook book;
  book.set_most_bytes(4 << 20);
  constexpr uint32_t kSamples = 1000;
  DatasetId last{};
  for (int i = 0; i < 600; ++i) {
    last = book.use(SessionId{1}, "object " + std::to_string(i), kSamples);
    ASSERT_NE(last, policy::kNoDataset);
    settle(&book, kSamples * SampleOrder::kPositionBytes);
    ASSERT_TRUE(book.publish(SessionId{1}, last, 1, 0, counted(kSamples))) << i;
    for (uint32_t s = 0; s < kSamples; ++s) {
      book.begin(SessionId{1}, 7, last, s);
      book.part(7, last, s, {s * 100ULL, 50, FileId{1}});
      ASSERT_TRUE(book.end(7, last, s));
      settle(&book);
    }
    ASSERT_LE(book.memory().held, (4U << 20) + 200);
    ASSERT_EQ(book.set(last)->known(), kSamples) << i;
  }
  EXPECT_FALSE(book.surplus());
  book.leave(SessionId{1});
  EXPECT_EQ(book.memory().held, 0U);
}

TEST(SampleMemory, TheTwoHundredAndFiftySeventhDatasetIsFollowed) {
  SampleBook book;
  for (uint32_t i = 0; i < 2 * SampleBook::kMaxDatasets; ++i) {
    const SessionId session{1 + i % 4};
    const DatasetId set = book.use(session, std::to_string(i), 10);
    ASSERT_NE(set, policy::kNoDataset);
    // Broken off: its order never ends.
    ASSERT_TRUE(book.publish(session, set, 1, 0, counted(10)));
    ASSERT_TRUE(book.datasets().locate(session, set, 3, {{0, 1, FileId{1}}}, Source::kDeclared));
    settle(&book);
    ASSERT_EQ(book.set(set)->known(), 1U) << i;
  }
  size_t holding = 0;
  for (const SampleBook::View& view : book.views()) holding += view.known != 0 ? 1 : 0;
  EXPECT_EQ(holding, SampleBook::kMaxDatasets);
}

TEST(SampleMemory, OneSessionsDatasetsDoNotPushOutAnothers) {
  SampleBook book;
  const DatasetId honest = book.use(SessionId{1}, "honest", 10);
  book.datasets().locate(SessionId{1}, honest, 3, {{0, 1, FileId{1}}}, Source::kDeclared);
  for (uint32_t i = 0; i < 10 * Datasets::kMaxNames; ++i) {
    const DatasetId set = book.use(SessionId{2}, "flood " + std::to_string(i), 10);
    book.datasets().locate(SessionId{2}, set, 3, {{0, 1, FileId{1}}}, Source::kDeclared);
    if (i % 64 == 0) settle(&book);
  }
  settle(&book);
  EXPECT_EQ(book.set(honest)->known(), 1U);
  EXPECT_EQ(book.use(SessionId{1}, "honest", 10), honest);
}

TEST(SampleMemory, ADatasetThatGaveWayKeepsItsNumberAndBeginsAnew) {
  SampleBook book;
  const DatasetId set = book.use(SessionId{1}, "set", 10);
  book.datasets().locate(SessionId{1}, set, 3, {{0, 1, FileId{1}}}, Source::kDeclared);
  book.release({set, false});
  EXPECT_EQ(book.set(set)->known(), 0U);
  EXPECT_TRUE(book.datasets().locate(SessionId{1}, set, 4, {{0, 1, FileId{1}}}, Source::kDeclared));
  EXPECT_EQ(book.set(set)->known(), 1U);
  EXPECT_EQ(book.use(SessionId{1}, "set", 10), set);
}

TEST(SampleMemory, NumbersOfDatasetsComeRound) {
  SampleBook book;
  const DatasetId first = book.use(SessionId{1}, "first", 10);
  for (uint32_t i = 0; i < 3000; ++i) {
    const DatasetId set = book.use(SessionId{2}, "set", 10);
    ASSERT_NE(set, first);
    ASSERT_LE(set, DatasetId{Datasets::kMaxId});
    book.leave(SessionId{2});
  }
}

TEST(SampleMemory, SamplesThatNeverEndAreBounded) {
  SampleBook book;
  const DatasetId set = book.use(SessionId{1}, "set", kHuge);
  for (uint64_t reader = 0; reader < 3000; ++reader) {
    for (uint64_t i = 0; i < 100; ++i) book.begin(SessionId{1}, reader, set, i);
  }
  size_t open = 0;
  for (uint64_t reader = 0; reader < 3000; ++reader) {
    for (uint64_t i = 0; i < 100; ++i) open += book.end(reader, set, i) ? 1 : 0;
  }
  EXPECT_LE(open, BegunSamples::kMaxOpenAll);
  EXPECT_GT(open, 0U);
}

TEST(SampleMemory, NoJobReadsInAnothersDataset) {
  SampleBook book;
  const DatasetId set = book.use(SessionId{1}, "set", 10);
  book.begin(SessionId{2}, 5, set, 3);
  EXPECT_FALSE(book.end(5, set, 3));
  EXPECT_FALSE(
      book.datasets().locate(SessionId{2}, set, 3, {{0, 1, FileId{1}}}, Source::kDeclared));
}

}  // namespace
}  // namespace sluice::test
