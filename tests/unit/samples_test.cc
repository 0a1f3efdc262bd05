// What of several jobs' orders is wanted next.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "policy/samples/sample_book.h"

namespace sluice::test {
namespace {

using policy::DatasetId;
using policy::Extent;
using policy::FileId;
using policy::JobOrders;
using policy::SampleBook;
using policy::SessionId;
using Verdict = policy::FetchVerdict;

std::vector<uint32_t> shuffled(uint32_t count, uint32_t seed) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

struct Book : SampleBook {
  DatasetId data = use(SessionId{1}, "set", 1000);
  void read(uint64_t reader, uint32_t index, std::vector<Extent> parts) {
    begin(SessionId{1}, reader, data, index);
    for (const Extent& extent : parts) part(reader, data, index, extent);
    end(reader, data, index);
  }
  // All samples are known, and are read in the order that is returned.
  std::vector<uint32_t> all_in_an_order() {
    auto order = shuffled(1000, 1);
    for (uint32_t i = 0; i < 1000; ++i) read(1, i, {{i * 4096ULL, 4096, FileId{9}}});
    publish(SessionId{1}, data, 0, 0, order);
    return order;
  }
};

Verdict take_all(SessionId, const Extent&) { return Verdict::kTake; }

JobOrders::Window bytes(uint64_t window) {
  return [window](const JobOrders::Ahead&) { return window; };
}

TEST(SampleBook, WhatWasWatchedInOneEpochIsWantedInTheNext) {
  Book book;
  const auto first = shuffled(1000, 1);
  const auto second = shuffled(1000, 2);
  book.publish(SessionId{1}, book.data, 0, 0, first);
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all)) << "nothing is known yet";
  for (const uint32_t index : first)
    book.read(1 + index % 4, index, {{index * 4096ULL, 4096, FileId{9}}});
  book.publish(SessionId{1}, book.data, 1, 0, second);
  for (const uint32_t index : second) {
    const auto wanted = book.orders().next(bytes(1 << 30), take_all);
    ASSERT_TRUE(wanted);
    EXPECT_EQ(wanted->extent, (Extent{index * 4096ULL, 4096, FileId{9}}));
    EXPECT_EQ(wanted->session, SessionId{1});
  }
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all));
}

TEST(SampleBook, WhatIsLearnedAfterTheOrderWasPublishedIsWantedToo) {
  Book book;
  book.publish(SessionId{1}, book.data, 1, 0, shuffled(1000, 1));
  EXPECT_FALSE(book.orders().next(bytes(1 << 30), take_all));
  ASSERT_EQ(book.use(SessionId{2}, "set", 1000), book.data);
  book.publish(SessionId{2}, book.data, 0, 0, shuffled(1000, 2));
  for (uint32_t i = 0; i < 500; ++i) {
    book.begin(SessionId{2}, 7, book.data, i);
    book.part(7, book.data, i, {i * 4096ULL, 4096, FileId{9}});
    book.end(7, book.data, i);
  }
  int first = 0;
  while (const auto wanted = book.orders().next(bytes(1 << 30), take_all))
    first += wanted->session == SessionId{1} ? 1 : 0;
  EXPECT_EQ(first, 500) << "the first job's order has them, learned by the second";
}

TEST(SampleBook, StaysWithinTheWindowAheadOfItsReaders) {
  Book book;
  const auto order = book.all_in_an_order();
  int handed = 0;
  while (book.orders().next(bytes(16 * 4096), take_all)) ++handed;
  EXPECT_EQ(handed, 16);
  book.begin(SessionId{1}, 1, book.data, order[0]);
  EXPECT_TRUE(book.orders().next(bytes(16 * 4096), take_all));
  EXPECT_FALSE(book.orders().next(bytes(16 * 4096), take_all));
}

// It lies behind what was handed out meanwhile, and is read sooner.
TEST(SampleBook, TheControlGroupIsWantedOnceItsTrialIsOver) {
  Book book;
  const auto order = book.all_in_an_order();
  book.datasets().set_trial(book.data, false, true);
  std::set<uint32_t> wanted;
  while (const auto one = book.orders().next(bytes(200 * 4096), take_all)) {
    EXPECT_FALSE(JobOrders::is_control(one->sample));
    wanted.insert(one->sample);
  }
  EXPECT_EQ(wanted.size(), 200U);
  book.datasets().set_trial(book.data, false, false);
  for (uint32_t i = 0; i < 100; ++i) book.read(1, order[i], {});
  std::vector<uint32_t> after;
  while (const auto one = book.orders().next(bytes(200 * 4096), take_all)) {
    EXPECT_TRUE(wanted.insert(one->sample).second);
    after.push_back(one->sample);
  }
  ASSERT_GE(after.size(), 40U);
  const auto passed_over = std::find_if(order.begin() + 100, order.end(), JobOrders::is_control);
  EXPECT_EQ(after.front(), *passed_over);
}

TEST(SampleBook, WhatIsToBeBroughtInAnotherWayIsWantedOnceMore) {
  Book book;
  const auto order = book.all_in_an_order();
  int before = 0, after = 0;
  while (book.orders().next(bytes(200 * 4096), take_all)) ++before;
  EXPECT_EQ(before, 200);
  for (uint32_t i = 0; i < 10; ++i) book.read(1, order[i], {});
  book.orders().restart(book.data);
  while (const auto one = book.orders().next(bytes(200 * 4096), take_all)) {
    EXPECT_EQ(one->sample, order[10 + static_cast<size_t>(after++)]);
  }
  EXPECT_EQ(after, 200);
}

TEST(SampleBook, WhatCannotBeReadNowIsWantedLaterAndWhatNeverIsNot) {
  Book book;
  book.read(1, 0, {{0, 10, FileId{9}}, {8192, 10, FileId{9}}});
  book.read(1, 1, {{20000, 10, FileId{9}}});
  book.publish(SessionId{1}, book.data, 0, 0, std::vector<uint32_t>{0, 1});
  EXPECT_FALSE(
      book.orders().next(bytes(1 << 20), [](SessionId, const Extent&) { return Verdict::kLater; }));
  const auto odd = [](SessionId, const Extent& extent) {
    return extent.offset == 8192 ? Verdict::kNever : Verdict::kTake;
  };
  EXPECT_EQ(book.orders().next(bytes(1 << 20), odd)->extent.offset, 0U);
  EXPECT_EQ(book.orders().next(bytes(1 << 20), odd)->extent.offset, 20000U);
}

TEST(SampleBook, TwoJobsTakeTurns) {
  Book book;
  ASSERT_EQ(book.use(SessionId{2}, "set", 1000), book.data) << "one dataset, whoever uses it";
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, FileId{9}}});
  book.publish(SessionId{1}, book.data, 0, 0, shuffled(1000, 1));
  book.publish(SessionId{2}, book.data, 0, 0, shuffled(1000, 2));
  int fetched[3] = {};
  for (int i = 0; i < 100; ++i) {
    ++fetched[number(book.orders().next(bytes(1 << 30), take_all)->session)];
  }
  EXPECT_EQ(fetched[1], 50);
  EXPECT_EQ(fetched[2], 50);
}

// Workers of two jobs over one dataset, each a session of its own: neither job's order was taken
// from, and after the first window nothing was fetched for them any more.
TEST(SampleBook, SpawnedWorkersOfTwoJobsReadTheirParentsOrders) {
  Book book;
  for (const uint32_t session : {2U, 11U, 12U, 21U}) {
    ASSERT_EQ(book.use(SessionId{session}, "set", 1000), book.data);
  }
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, FileId{9}}});
  const std::vector<uint32_t> first = shuffled(1000, 1), second = shuffled(1000, 2);
  book.publish(SessionId{1}, book.data, 3, 0, first);
  book.publish(SessionId{2}, book.data, 5, 0, second);
  EXPECT_FALSE(book.orders().running(SessionId{11}, book.data)) << "whose it is is unknown";
  book.orders().set_parent(SessionId{11}, SessionId{1});
  book.orders().set_parent(SessionId{12},
                           SessionId{11});  // a worker of a worker, as behind a fork server
  book.orders().set_parent(SessionId{21}, SessionId{2});
  EXPECT_EQ(book.orders().running(SessionId{11}, book.data)->session, SessionId{1});
  EXPECT_EQ(book.orders().running(SessionId{12}, book.data)->epoch, 3U);
  EXPECT_EQ(book.orders().running(SessionId{21}, book.data)->session, SessionId{2});
  EXPECT_EQ(book.following(SessionId{21}, book.data)->epoch, 5U);
  int handed[3] = {};
  while (const auto wanted = book.orders().next(bytes(8 * 4096), take_all))
    ++handed[number(wanted->session)];
  EXPECT_EQ(handed[1], 8);
  for (uint32_t i = 0; i < 5; ++i) book.begin(SessionId{11 + i % 2}, 100 + i, book.data, first[i]);
  for (uint32_t i = 0; i < 3; ++i) book.begin(SessionId{21}, 200 + i, book.data, second[i]);
  while (const auto wanted = book.orders().next(bytes(8 * 4096), take_all))
    ++handed[number(wanted->session)];
  EXPECT_EQ(handed[1], 13);
  EXPECT_EQ(handed[2], 11);
  book.leave(SessionId{1});
  EXPECT_EQ(book.orders().running(SessionId{11}, book.data)->session, SessionId{2})
      << "the only one that is left";
}

TEST(SampleBook, EachSessionHasAWindowOfItsOwn) {
  Book book;
  ASSERT_EQ(book.use(SessionId{2}, "set", 1000), book.data);
  for (uint32_t i = 0; i < 1000; ++i) book.read(1, i, {{i * 4096ULL, 4096, FileId{9}}});
  book.publish(SessionId{1}, book.data, 0, 0, shuffled(1000, 1));
  book.publish(SessionId{2}, book.data, 0, 0, shuffled(1000, 2));
  const JobOrders::Window window = [](const JobOrders::Ahead& ahead) {
    return number(ahead.session) * 8 * 4096ULL;
  };
  int handed[3] = {};
  while (const auto wanted = book.orders().next(window, take_all))
    ++handed[number(wanted->session)];
  EXPECT_EQ(handed[1], 8);
  EXPECT_EQ(handed[2], 16);
  std::set<uint64_t> ahead;
  book.for_each_ahead([&ahead](const Extent& extent) { ahead.insert(extent.offset); });
  EXPECT_LE(ahead.size(), 24U);
  EXPECT_GE(ahead.size(), 16U) << "some may be in both";
}

// Memory for all positions between the first worker and the last was set aside for what is ahead,
// though samples are handed out by worker, so that few have to be ahead of each.
TEST(SampleBook, TheWindowOfKnownWorkersDoesNotGrowWithTheirBatches) {
  constexpr uint32_t kWorkers = 4, kBatch = 50;
  Book book;
  const auto order = shuffled(1000, 1);
  book.publish(SessionId{1}, book.data, 0, 0, order);
  JobOrders::Ahead seen;
  const JobOrders::Window window = [&seen](const JobOrders::Ahead& ahead) {
    seen = ahead;
    return 0;
  };
  EXPECT_FALSE(book.orders().next(window, take_all));
  EXPECT_EQ(seen.beyond, 0U);
  for (uint32_t begun = 0; begun < 800; begun += kWorkers * kBatch) {
    for (uint32_t within = 0; within < kBatch; ++within) {
      for (uint32_t worker = 0; worker < kWorkers; ++worker) {
        const uint32_t index = order[begun + worker * kBatch + within];
        book.read(1 + worker, index, {{index * 4096ULL, 4096, FileId{9}}});
        if (begun != 0 || worker != kWorkers - 1 || within != 0) continue;
        EXPECT_FALSE(book.orders().next(window, take_all));
        EXPECT_EQ(seen.beyond, (kWorkers - 1) * kBatch) << "they are not known yet";
      }
    }
  }
  book.read(1, order[800], {{order[800] * 4096ULL, 4096, FileId{9}}});
  book.read(kWorkers, order[999 - kBatch + 1],
            {{order[999 - kBatch + 1] * 4096ULL, 4096, FileId{9}}});
  EXPECT_FALSE(book.orders().next(window, take_all));
  EXPECT_EQ(seen.spread, (kWorkers - 1) * kBatch);
  EXPECT_GE(seen.beyond, kWorkers);
  EXPECT_LE(seen.beyond, kWorkers * 8) << "about as many for each worker, whatever its batch";
}

// Where nearly all samples had copies, the window was full of them, and the storage of the others
// idle: a sample that has a copy counted like one that is to be fetched.
TEST(SampleBook, WhatHasACopyLeavesTheWindowToWhatIsToBeFetched) {
  Book book;
  const auto order = book.all_in_an_order();
  uint64_t here = 0;
  const JobOrders::Judge judge = [&here](SessionId, const Extent& extent) {
    if (extent.offset / 4096 % 20 == 0) return Verdict::kTake;
    ++here;
    return Verdict::kHere;
  };
  uint64_t taken = 0;
  while (book.orders().next(bytes(40 * 4096), judge)) ++taken;
  EXPECT_GE(taken * 4 + here, 40U * 4 - 4);
  EXPECT_LE(taken * 4 + here, 40U * 4 + 4) << "four copies count as one that is to be fetched";
  EXPECT_LT(here, 200U) << "and not the whole epoch is ahead";
}

// Nothing was predicted again when an epoch began whose order had been known before: what memory
// had retained for it made room for its first samples.
TEST(SampleBook, AnEpochThatBeginsWithItsLastSampleIsNoticed) {
  Book book;
  const auto first = shuffled(100, 1), second = shuffled(100, 2);
  for (uint32_t i = 0; i < 100; ++i) book.read(1, i, {{i * 4096ULL, 4096, FileId{9}}});
  book.publish(SessionId{1}, book.data, 0, 0, first);
  EXPECT_TRUE(book.orders().begin_epochs()) << "the first";
  book.publish(SessionId{1}, book.data, 1, 0, second);
  for (const uint32_t index : first) {
    EXPECT_FALSE(book.orders().begin_epochs());
    book.read(1, index, {{index * 4096ULL, 4096, FileId{9}}});
    EXPECT_EQ(book.orders().running(SessionId{1}, book.data)->epoch, 0U) << "its last one, too";
  }
  EXPECT_TRUE(book.orders().begin_epochs());
  EXPECT_EQ(book.orders().running(SessionId{1}, book.data)->epoch, 1U);
  EXPECT_EQ(book.orders().upcoming(book.data), second);
  EXPECT_FALSE(book.orders().begin_epochs());
}

// There was no room for a sample; its reader came and read the original, and then it was fetched.
TEST(SampleBook, WhatWasReadMeanwhileIsNotFetched) {
  Book book;
  const auto order = book.all_in_an_order();
  const auto full = [](SessionId, const Extent&) { return Verdict::kLater; };
  EXPECT_FALSE(book.orders().next(bytes(1 << 20), full));
  book.read(1, order[0], {{order[0] * 4096ULL, 4096, FileId{9}}});
  const auto next = book.orders().next(bytes(1 << 20), take_all);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->sample, order[1]);
}

TEST(SampleBook, ReadsOfSamplesThatOverlapBelongToNone) {
  Book book;
  book.begin(SessionId{1}, 1, book.data, 3);
  book.begin(SessionId{1}, 1, book.data, 4);
  book.part(1, book.data, 5, {0, 10, FileId{9}});  // was not begun
  EXPECT_TRUE(book.end(1, book.data, 3));
  EXPECT_TRUE(book.end(1, book.data, 4));
  EXPECT_FALSE(book.end(1, book.data, 4));
  EXPECT_TRUE(book.parts(book.data, 5).empty());
}

// A batch that was read with one call began as a whole: what had no copy then was not fetched any
// more, and was read from storage one sample after the other.
TEST(SampleBook, SamplesOfOneCallAreWantedUntilTheyEnd) {
  Book book;
  const auto order = book.all_in_an_order();
  for (uint32_t at = 0; at < 8; ++at) book.begin(SessionId{1}, 1, book.data, order[at]);
  const auto first = book.orders().next(bytes(4 * 4096), take_all);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sample, order[1]) << "the first one is being read";
  EXPECT_TRUE(book.orders().is_ahead(*first));
  while (book.orders().next(bytes(4 * 4096), take_all)) {
  }
  for (uint32_t at = 0; at < 4; ++at) book.end(1, book.data, order[at]);
  EXPECT_FALSE(book.orders().is_ahead(*first));
  const auto next = book.orders().next(bytes(4 * 4096), take_all);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->sample, order[5]);
}

TEST(SampleBook, SamplesOfOneCallAreNotWantedWhenTheirReaderIsGone) {
  Book book;
  const auto order = book.all_in_an_order();
  constexpr uint64_t kReader = 77ULL << 32 | 1;
  for (uint32_t at = 0; at < 8; ++at) book.begin(SessionId{1}, kReader, book.data, order[at]);
  book.remove_process(77);
  const auto next = book.orders().next(bytes(4096), take_all);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->sample, order[8]);
}

TEST(SampleBook, RefusesWhatIsNotThere) {
  Book book;
  EXPECT_FALSE(book.publish(SessionId{1}, book.data, 0, 0, std::vector<uint32_t>{1000}));
  EXPECT_FALSE(
      book.publish(SessionId{1}, DatasetId{number(book.data) + 1}, 0, 0, std::vector<uint32_t>{0}));
  EXPECT_FALSE(book.publish(SessionId{2}, book.data, 0, 0, std::vector<uint32_t>{0}))
      << "not its dataset";
  EXPECT_TRUE(book.begin(SessionId{1}, 1, book.data, 1000).empty());
  EXPECT_NE(book.use(SessionId{1}, "set", 999), book.data) << "another size is another dataset";
}

TEST(SampleBook, ADatasetIsForgottenWithItsLastUser) {
  Book book;
  book.use(SessionId{2}, "set", 1000);
  book.read(1, 0, {{0, 10, FileId{9}}});
  book.leave(SessionId{1});
  EXPECT_FALSE(book.parts(book.data, 0).empty());
  book.leave(SessionId{2});
  EXPECT_TRUE(book.parts(book.data, 0).empty());
  EXPECT_NE(book.use(SessionId{1}, "set", 1000), book.data);
}

TEST(SampleBook, SaysWhichJobReadsAtRandom) {
  Book book;
  book.publish(SessionId{1}, book.data, 0, 0, shuffled(1000, 1));
  EXPECT_FALSE(book.reads_at_random(1));
  book.begin(SessionId{1}, 1, book.data, 17);
  EXPECT_TRUE(book.reads_at_random(1));
  EXPECT_FALSE(book.reads_at_random(2));
  book.end(1, book.data, 17);
  EXPECT_FALSE(book.reads_at_random(1));
}

}  // namespace
}  // namespace sluice::test
