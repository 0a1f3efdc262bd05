// The order in which samples come, and what of it is still ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using policy::SampleOrder;

std::vector<uint32_t> shuffled(uint32_t count, uint32_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

std::span<const uint32_t> following(const SampleOrder& job) {
  return job.later().following(job.epoch() + 1);
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

// Two workers have begun batches of three.
TEST(SampleOrder, TheSamplesThatComeNextAreThoseOfEachWorker) {
  using Samples = std::vector<uint32_t>;
  SampleOrder job;
  job.publish(0, 0, Samples{7, 3, 9, 1, 4, 8, 2});
  EXPECT_EQ(job.next(3), (Samples{7, 3, 9}));
  EXPECT_TRUE(job.take(7));
  EXPECT_TRUE(job.take(1));
  EXPECT_EQ(job.next(2), (Samples{3, 4}));
  EXPECT_EQ(job.next(3), (Samples{3, 4, 9}));
  EXPECT_EQ(job.next(100), (Samples{3, 4, 9, 8, 2}));
  for (const uint32_t sample : {3, 9, 4, 8, 2}) EXPECT_TRUE(job.take(sample));
  EXPECT_TRUE(job.next(100).empty());
}

// Workers begin an epoch all at once, each with batches of its own: the first samples of most of
// them were not fetched, since nothing had shown yet how far apart they are.
TEST(SampleOrder, AnEpochBeginsAsSpreadAsTheOneBeforeWas) {
  constexpr uint32_t kApart = 40, kCount = 400;
  SampleOrder job;
  job.publish(0, 0, shuffled(kCount, 1));
  job.publish(1, 0, shuffled(kCount, 2));
  EXPECT_EQ(job.spread(), 0U);
  const auto order = shuffled(kCount, 1);
  for (uint32_t at = 0; at < kCount; at += kApart) {  // the first of these is read last
    for (uint32_t within = 1; within <= kApart; ++within) {
      ASSERT_TRUE(job.take(order[at + within % kApart]));
    }
  }
  EXPECT_EQ(job.peek(), shuffled(kCount, 2)[0]);
  EXPECT_EQ(job.spread(), kApart);
  EXPECT_TRUE(job.beyond().begins);
  const auto next = shuffled(kCount, 2);
  for (uint32_t at = 0; at < kApart; ++at) ASSERT_TRUE(job.take(next[at]));
  EXPECT_EQ(job.spread(), 0U) << "now it is known how far apart they are";
  EXPECT_FALSE(job.beyond().begins);
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

// A job of one epoch reads nothing for a second one that was only expected.
TEST(SampleOrder, AnExpectedEpochIsKnownAndDoesNotBegin) {
  const auto first = shuffled(100, 1), second = shuffled(100, 2), other = shuffled(100, 3);
  SampleOrder job;
  job.publish(0, 0, first, true);
  EXPECT_TRUE(following(job).empty()) << "nothing runs that it could follow";
  job.publish(0, 0, first);
  const uint64_t held = job.held();
  job.publish(2, 0, other, true);
  EXPECT_TRUE(following(job).empty());
  job.publish(1, 0, second, true);
  EXPECT_TRUE(std::ranges::equal(following(job), second));
  EXPECT_GT(job.held(), held);
  for (const uint32_t index : first) EXPECT_TRUE(job.take(index));
  EXPECT_EQ(job.epoch(), 0U);
  EXPECT_FALSE(job.peek());
  EXPECT_FALSE(job.unfinished());
  job.publish(1, 0, other);
  EXPECT_EQ(job.epoch(), 1U);
  EXPECT_TRUE(std::ranges::equal(job.order(), other));
  EXPECT_TRUE(following(job).empty());
  job.publish(2, 0, first, true);
  EXPECT_TRUE(job.later().is_expected());
  job.publish(2, 0, {}, true);
  EXPECT_FALSE(job.later().is_expected()) << "no more";
  job.publish(2, 0, first, true);
  job.publish(2, 0, second);
  EXPECT_FALSE(job.later().is_expected());
  job.publish(2, 0, first, true);
  EXPECT_TRUE(std::ranges::equal(following(job), second)) << "what was published counts";
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

TEST(SampleOrder, ARepublishedTailReplacesWhatWasPublishedFromThereOn) {
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

TEST(SampleOrder, DistinguishesAFilesOrderFromAShuffledOne) {
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
  const auto see = [&ahead](uint32_t index, uint64_t) { ahead.insert(index); };
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

}  // namespace
}  // namespace sluice::test
