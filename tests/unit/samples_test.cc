// What samples are made of, the order in which they come, and what is wanted next.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using optimizer::Extent;
using optimizer::JobOrders;
using optimizer::SampleBook;
using optimizer::SampleOrder;
using optimizer::SampleSet;
using optimizer::Source;
using Verdict = optimizer::FetchVerdict;

std::vector<uint32_t> shuffled(uint32_t count, uint32_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

TEST(SampleSet, NeighboursAreJoinedAndTheRestKeptInOrder) {
  SampleSet set(10);
  set.learn(3, {{100, 50, 7}, {150, 50, 7}, {120, 10, 7}, {0, 5, 7}, {5, 5, 8}});
  const auto parts = set.parts(3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0], (Extent{100, 100, 7}));
  EXPECT_EQ(parts[1], (Extent{0, 5, 7}));
  EXPECT_EQ(parts[2], (Extent{5, 5, 8}));
  EXPECT_EQ(set.bytes(3), 110U);
  EXPECT_EQ(set.known(), 1U);
}

TEST(SampleSet, LearningAnewReplaces) {
  SampleSet set(10);
  set.learn(9, {{0, 5, 1}, {100, 5, 1}});
  set.learn(9, {{50, 7, 2}});
  ASSERT_EQ(set.parts(9).size(), 1U);
  EXPECT_EQ(set.parts(9)[0], (Extent{50, 7, 2}));
  set.learn(9, {});
  EXPECT_TRUE(set.parts(9).empty());
  EXPECT_EQ(set.known(), 0U);
  set.learn(10, {{0, 1, 1}});  // there is no such sample
  EXPECT_TRUE(set.parts(10).empty());
  EXPECT_TRUE(set.parts(UINT64_MAX).empty());
}

TEST(SampleSet, ASampleOfTooManyPiecesIsNotPlannedWith) {
  SampleSet set(1);
  std::vector<Extent> parts;
  for (uint64_t i = 0; i <= SampleSet::kMaxParts; ++i) parts.push_back({i * 100, 10, 1});
  set.learn(0, parts);
  EXPECT_TRUE(set.parts(0).empty());
}

TEST(SampleSet, WhatWasSeenCountsMost) {
  const std::vector<Extent> one = {{0, 5, 1}};
  const std::vector<Extent> other = {{10, 5, 1}};
  const auto after = [&](Source first, Source second) {
    SampleSet set(1);
    set.learn(0, one, first);
    set.learn(0, other, second);
    return set.parts(0)[0] == other[0];
  };
  using enum Source;
  EXPECT_TRUE(after(kSeen, kSeen));
  for (const Source first : {kKept, kDeclared, kGuessed}) EXPECT_TRUE(after(first, kSeen));
  for (const Source second : {kKept, kDeclared, kGuessed}) EXPECT_FALSE(after(kSeen, second));
  for (const Source first : {kKept, kDeclared}) EXPECT_TRUE(after(first, kDeclared));
  EXPECT_TRUE(after(kGuessed, kDeclared));
  for (const Source first : {kKept, kDeclared, kGuessed}) EXPECT_FALSE(after(first, kGuessed));
}

TEST(SampleSet, NewsAreWhatNobodyKnewBefore) {
  SampleSet set(10);
  set.learn(0, {{0, 5, 1}}, Source::kDeclared);
  set.learn(1, {{5, 5, 1}}, Source::kKept);
  set.learn(2, {{20, 5, 1}}, Source::kGuessed);
  EXPECT_EQ(set.news(), 0U);
  set.learn(0, {{0, 5, 1}});
  set.learn(1, {{5, 5, 1}});
  EXPECT_EQ(set.news(), 0U);
  EXPECT_EQ(set.source(0), Source::kDeclared);
  EXPECT_EQ(set.source(1), Source::kSeen);
  set.learn(2, {{20, 5, 1}});  // a guess that was right is known from now on
  set.learn(3, {{30, 5, 1}});
  set.learn(3, {{30, 5, 1}});
  set.learn(3, {{31, 5, 1}});
  EXPECT_EQ(set.news(), 3U);
  EXPECT_EQ(set.source(3), Source::kSeen);
}

TEST(SampleSet, GuessesAreForgottenTogether) {
  SampleSet set(10);
  for (uint64_t i = 0; i < 8; ++i) set.learn(i, {{i * 10, 5, 1}}, Source::kGuessed);
  set.learn(5, {{50, 5, 1}});
  set.learn(6, {{61, 5, 1}});
  set.forget_guesses();
  EXPECT_EQ(set.known(), 2U);
  EXPECT_TRUE(set.parts(7).empty());
  EXPECT_EQ(set.parts(6)[0], (Extent{61, 5, 1}));
}

TEST(SampleOrder, EveryPositionIsHandedOutOnceInOrder) {
  const auto order = shuffled(1000, 1);
  SampleOrder job;
  job.publish(0, 0, order);
  std::vector<uint32_t> got;
  while (const auto next = job.peek()) {
    got.push_back(*next);
    job.hand_out(10);
  }
  EXPECT_EQ(got, order);
  EXPECT_EQ(job.ahead_bytes(), 10000U);
  for (const uint32_t index : order) EXPECT_TRUE(job.take(index));
  EXPECT_EQ(job.ahead_bytes(), 0U);
  EXPECT_EQ(job.taken(), 1000U);
  EXPECT_FALSE(job.take(order[0])) << "everything was taken";
}

TEST(SampleOrder, WorkersThatTakeOutOfTurnLoseNothing) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 draw(seed);
    const auto order = shuffled(2000, seed);
    SampleOrder job;
    job.publish(0, 0, order);
    std::vector<uint32_t> front(order.begin(), order.end());
    uint64_t handed = 0;
    while (!front.empty()) {
      const size_t at = draw() % std::min<size_t>(front.size(), 200);
      ASSERT_TRUE(job.take(front[at])) << "seed " << seed;
      front.erase(front.begin() + static_cast<ptrdiff_t>(at));
      if (job.peek() && draw() % 2 == 0) {
        ASSERT_NE(std::find(front.begin(), front.end(), *job.peek()), front.end())
            << "handed out although it was taken, seed " << seed;
        job.hand_out(1);
        ++handed;
      }
      ASSERT_LE(job.ahead_bytes(), handed);
    }
    EXPECT_EQ(job.ahead_bytes(), 0U) << "seed " << seed;
    EXPECT_FALSE(job.peek());
  }
}

TEST(SampleOrder, EventsThatWereLostDoNotHoldUpTheRest) {
  std::vector<uint32_t> order(200000);
  std::iota(order.begin(), order.end(), 0);
  SampleOrder job;
  job.publish(0, 0, order);
  for (uint32_t index = 0; index < order.size(); ++index) {
    if (job.ahead_bytes() < 100 && job.peek()) job.hand_out(1);
    if (index % 1000 != 7) {
      ASSERT_TRUE(job.take(index)) << index;
    }
  }
  EXPECT_LE(job.ahead_bytes(), 5U) << "one place in a thousand, within the front";
}

TEST(SampleOrder, WithReplacementEachPlaceCounts) {
  SampleOrder job;
  job.publish(0, 0, std::vector<uint32_t>{5, 5, 2, 5});
  EXPECT_TRUE(job.take(5));
  EXPECT_TRUE(job.take(5));
  EXPECT_TRUE(job.take(5));
  EXPECT_FALSE(job.take(5));
  EXPECT_TRUE(job.take(2));
}

// Events come through the ring, orders through a socket: the latter may be first.
TEST(SampleOrder, AnEpochBeginsWithTheLastEventOfTheOneBefore) {
  SampleOrder order;
  order.publish(0, 0, std::vector<uint32_t>{2, 0, 1});
  order.publish(1, 0, std::vector<uint32_t>{1, 2, 0});
  order.take(2);
  order.take(1);
  EXPECT_EQ(order.epoch(), 0U);
  EXPECT_EQ(order.peek(), 0U);
  order.take(0);
  EXPECT_EQ(order.peek(), 1U) << "wanted before anybody begins it";
  EXPECT_EQ(order.epoch(), 1U);
}

TEST(SampleOrder, ALaterEpochWaitsForTheEndOfTheRunningOne) {
  const auto first = shuffled(100, 1);
  const auto second = shuffled(100, 2);
  SampleOrder job;
  job.publish(0, 0, first);
  job.publish(1, 0, second);
  EXPECT_EQ(*job.peek(), first[0]);
  for (const uint32_t index : first) ASSERT_TRUE(job.take(index));
  EXPECT_EQ(job.epoch(), 0U);
  ASSERT_TRUE(job.take(second[0]));
  EXPECT_EQ(job.epoch(), 1U);
  EXPECT_EQ(*job.peek(), second[1]);
}

TEST(SampleOrder, AnEpochThatWasBrokenOffGivesWayToTheNext) {
  std::vector<uint32_t> first(20000);
  std::iota(first.begin(), first.end(), 0);
  const std::vector<uint32_t> second(first.rbegin(), first.rend());
  SampleOrder job;
  job.publish(0, 0, first);
  for (uint32_t index = 0; index < 100; ++index) ASSERT_TRUE(job.take(index));
  job.hand_out(7);
  job.publish(1, 0, second);
  ASSERT_TRUE(job.take(19999));
  EXPECT_EQ(job.epoch(), 1U);
  EXPECT_EQ(job.ahead_bytes(), 0U) << "what was fetched for the old epoch is not ahead in the new";
  EXPECT_EQ(*job.peek(), 19998U);
}

TEST(SampleOrder, ARepublishedTailReplacesWhatWasToldFromThereOn) {
  SampleOrder job;
  job.publish(0, 0, std::vector<uint32_t>{0, 1, 2, 3, 4, 5});
  for (int i = 0; i < 4; ++i) {
    job.peek();
    job.hand_out(10);
  }
  EXPECT_TRUE(job.take(0));
  job.publish(0, 2, std::vector<uint32_t>{9, 8, 7});
  EXPECT_EQ(job.size(), 5U);
  EXPECT_EQ(job.ahead_bytes(), 10U) << "position 1 alone";
  EXPECT_EQ(*job.peek(), 9U);
  job.publish(0, 99, std::vector<uint32_t>{1});  // leaves a gap: ignored
  EXPECT_EQ(job.size(), 5U);
}

TEST(SampleOrder, TellsAFilesOrderFromAShuffledOne) {
  std::vector<uint32_t> straight(1000);
  std::iota(straight.begin(), straight.end(), 0);
  SampleOrder job;
  job.publish(0, 0, straight);
  EXPECT_TRUE(job.sequential());
  SampleOrder other;
  other.publish(0, 0, shuffled(1000, 3));
  EXPECT_FALSE(other.sequential());
}

// Places that are learned while the order runs send it through the order again from the front: what
// was fetched further on was taken for unowned.
TEST(SampleOrder, WhatWasHandedOutIsAheadWhenTheOrderIsGoneThroughAgain) {
  SampleOrder order;
  const std::vector<uint32_t> indices = shuffled(100, 3);
  order.publish(0, 0, indices);
  for (uint32_t turn = 0; turn < 100; ++turn) {
    ASSERT_EQ(order.peek(), indices[turn]);
    order.hand_out(turn >= 20 && turn < 36 ? 4096 : 0);
  }
  std::set<uint32_t> ahead;
  const auto see = [&ahead](uint32_t index) { ahead.insert(index); };
  order.rewind();
  order.for_each_ahead(see);
  EXPECT_EQ(ahead, (std::set<uint32_t>(indices.begin() + 20, indices.begin() + 36)));
  ASSERT_EQ(order.peek(), indices[0]);
  order.hand_out(10);
  order.lighten(4096);
  EXPECT_EQ(order.ahead_bytes(), 16 * 4096 + 1U);
  ASSERT_TRUE(order.take(indices[20]));
  ahead.clear();
  order.for_each_ahead(see);
  EXPECT_EQ(ahead.size(), 16U) << "without the one that is being read, and with the first";
  order.publish(0, 0, indices);
  ahead.clear();
  order.for_each_ahead(see);
  EXPECT_TRUE(ahead.empty());
}

struct Book : SampleBook {
  uint32_t data = use(1, "set", 1000);
  void read(uint64_t reader, uint32_t index, std::vector<Extent> parts) {
    begin(1, reader, data, index);
    for (const Extent& extent : parts) part(reader, data, index, extent);
    end(reader, data, index);
  }
};

Verdict take_all(uint32_t, const Extent&) { return Verdict::kTake; }

JobOrders::Window bytes(uint64_t window) {
  return [window](const JobOrders::Ahead&) { return window; };
}

TEST(SampleBook, WhatWasWatchedInOneEpochIsWantedInTheNext) {
  Book book;
  const auto first = shuffled(1000, 1);
  const auto second = shuffled(1000, 2);
  book.publish(1, book.data, 0, 0, first);
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all)) << "nothing is known yet";
  for (const uint32_t index : first) book.read(1 + index % 4, index, {{index * 4096ULL, 4096, 9}});
  book.publish(1, book.data, 1, 0, second);
  for (const uint32_t index : second) {
    const auto wanted = book.orders().next(bytes(1 << 30), take_all);
    ASSERT_TRUE(wanted);
    EXPECT_EQ(wanted->extent, (Extent{index * 4096ULL, 4096, 9}));
    EXPECT_EQ(wanted->session, 1U);
  }
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all));
}

TEST(SampleBook, WhatIsLearnedAfterTheOrderWasToldIsWantedToo) {
  Book book;
  book.publish(1, book.data, 1, 0, shuffled(1000, 1));
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all));
  ASSERT_EQ(book.use(2, "set", 1000), book.data);
  book.publish(2, book.data, 0, 0, shuffled(1000, 2));
  for (uint32_t i = 0; i < 500; ++i) {
    book.begin(2, 7, book.data, i);
    book.part(7, book.data, i, {i * 4096ULL, 4096, 9});
    book.end(7, book.data, i);
  }
  int first = 0;
  while (const auto wanted = book.orders().next(bytes(1 << 30), take_all))
    first += wanted->session == 1 ? 1 : 0;
  EXPECT_EQ(first, 500) << "the first job's order has them, learned by the second";
}

TEST(SampleBook, StaysWithinTheWindowAheadOfItsReaders) {
  Book book;
  const auto order = shuffled(1000, 1);
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, 9}});
  book.publish(1, book.data, 0, 0, order);
  int handed = 0;
  while (book.orders().next(bytes(16 * 4096), take_all)) ++handed;
  EXPECT_EQ(handed, 16);
  book.begin(1, 1, book.data, order[0]);
  EXPECT_TRUE(book.orders().next(bytes(16 * 4096), take_all));
  EXPECT_FALSE(book.orders().next(bytes(16 * 4096), take_all));
}

TEST(SampleBook, WhatCannotBeReadNowIsWantedLaterAndWhatNeverIsNot) {
  Book book;
  book.read(1, 0, {{0, 10, 9}, {8192, 10, 9}});
  book.read(1, 1, {{20000, 10, 9}});
  book.publish(1, book.data, 0, 0, std::vector<uint32_t>{0, 1});
  EXPECT_FALSE(
      book.orders().next(bytes(1 << 20), [](uint32_t, const Extent&) { return Verdict::kLater; }));
  const auto odd = [](uint32_t, const Extent& extent) {
    return extent.offset == 8192 ? Verdict::kNever : Verdict::kTake;
  };
  EXPECT_EQ(book.orders().next(bytes(1 << 20), odd)->extent.offset, 0U);
  EXPECT_EQ(book.orders().next(bytes(1 << 20), odd)->extent.offset, 20000U);
}

TEST(SampleBook, TwoJobsAreServedInTurns) {
  Book book;
  ASSERT_EQ(book.use(2, "set", 1000), book.data) << "one dataset, whoever uses it";
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, 9}});
  book.publish(1, book.data, 0, 0, shuffled(1000, 1));
  book.publish(2, book.data, 0, 0, shuffled(1000, 2));
  int fetched[3] = {};
  for (int i = 0; i < 100; ++i) ++fetched[book.orders().next(bytes(1 << 30), take_all)->session];
  EXPECT_EQ(fetched[1], 50);
  EXPECT_EQ(fetched[2], 50);
}

// Workers of two jobs over one dataset, each a session of its own: neither job's order was taken
// from, and after the first window nothing was fetched for them any more.
TEST(SampleBook, SpawnedWorkersOfTwoJobsReadTheirParentsOrders) {
  Book book;
  for (const uint32_t session : {2U, 11U, 12U, 21U}) {
    ASSERT_EQ(book.use(session, "set", 1000), book.data);
  }
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, 9}});
  const std::vector<uint32_t> first = shuffled(1000, 1), second = shuffled(1000, 2);
  book.publish(1, book.data, 3, 0, first);
  book.publish(2, book.data, 5, 0, second);
  EXPECT_FALSE(book.orders().running(11, book.data)) << "whose it is is unknown";
  book.orders().set_parent(11, 1);
  book.orders().set_parent(12, 11);  // a worker of a worker, as behind a fork server
  book.orders().set_parent(21, 2);
  EXPECT_EQ(book.orders().running(11, book.data)->session, 1U);
  EXPECT_EQ(book.orders().running(12, book.data)->epoch, 3U);
  EXPECT_EQ(book.orders().running(21, book.data)->session, 2U);
  EXPECT_EQ(book.following(21, book.data)->epoch, 5U);
  int handed[3] = {};
  while (const auto wanted = book.orders().next(bytes(8 * 4096), take_all))
    ++handed[wanted->session];
  EXPECT_EQ(handed[1], 8);
  for (uint32_t i = 0; i < 5; ++i) book.begin(11 + i % 2, 100 + i, book.data, first[i]);
  for (uint32_t i = 0; i < 3; ++i) book.begin(21, 200 + i, book.data, second[i]);
  while (const auto wanted = book.orders().next(bytes(8 * 4096), take_all))
    ++handed[wanted->session];
  EXPECT_EQ(handed[1], 13);
  EXPECT_EQ(handed[2], 11);
  book.leave(1);
  EXPECT_EQ(book.orders().running(11, book.data)->session, 2U) << "the only one that is left";
}

TEST(SampleBook, EachSessionHasAWindowOfItsOwn) {
  Book book;
  ASSERT_EQ(book.use(2, "set", 1000), book.data);
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, 9}});
  book.publish(1, book.data, 0, 0, shuffled(1000, 1));
  book.publish(2, book.data, 0, 0, shuffled(1000, 2));
  const JobOrders::Window window = [](const JobOrders::Ahead& ahead) {
    return ahead.session * 8 * 4096ULL;
  };
  int handed[3] = {};
  while (const auto wanted = book.orders().next(window, take_all)) ++handed[wanted->session];
  EXPECT_EQ(handed[1], 8);
  EXPECT_EQ(handed[2], 16);
  std::set<uint64_t> ahead;
  book.for_each_ahead([&ahead](const Extent& extent) { ahead.insert(extent.offset); });
  EXPECT_LE(ahead.size(), 24U);
  EXPECT_GE(ahead.size(), 16U) << "some may be in both";
}

TEST(SampleBook, ReadsOfSamplesThatOverlapAreNobodys) {
  Book book;
  book.begin(1, 1, book.data, 3);
  book.begin(1, 1, book.data, 4);
  book.part(1, book.data, 5, {0, 10, 9});  // was not begun
  EXPECT_TRUE(book.end(1, book.data, 3));
  EXPECT_TRUE(book.end(1, book.data, 4));
  EXPECT_FALSE(book.end(1, book.data, 4));
  EXPECT_TRUE(book.parts(book.data, 5).empty());
}

TEST(SampleBook, RefusesWhatIsNotThere) {
  Book book;
  EXPECT_FALSE(book.publish(1, book.data, 0, 0, std::vector<uint32_t>{1000}));
  EXPECT_FALSE(book.publish(1, book.data + 1, 0, 0, std::vector<uint32_t>{0}));
  EXPECT_FALSE(book.publish(2, book.data, 0, 0, std::vector<uint32_t>{0})) << "not its dataset";
  EXPECT_TRUE(book.begin(1, 1, book.data, 1000).empty());
  EXPECT_NE(book.use(1, "set", 999), book.data) << "another size is another dataset";
}

TEST(SampleBook, ADatasetIsForgottenWithItsLastUser) {
  Book book;
  book.use(2, "set", 1000);
  book.read(1, 0, {{0, 10, 9}});
  book.leave(1);
  EXPECT_FALSE(book.parts(book.data, 0).empty());
  book.leave(2);
  EXPECT_TRUE(book.parts(book.data, 0).empty());
  EXPECT_NE(book.use(1, "set", 1000), book.data);
}

TEST(SampleBook, SaysWhoReadsAtRandom) {
  Book book;
  book.publish(1, book.data, 0, 0, shuffled(1000, 1));
  EXPECT_FALSE(book.reads_at_random(1));
  book.begin(1, 1, book.data, 17);
  EXPECT_TRUE(book.reads_at_random(1));
  EXPECT_FALSE(book.reads_at_random(2));
  book.end(1, book.data, 17);
  EXPECT_FALSE(book.reads_at_random(1));
}

}  // namespace
}  // namespace sluice::test
