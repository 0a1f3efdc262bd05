// A stage that does not hold all: what stays, and how much is fetched again.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/unit/stage_plan_data.h"

namespace sluice::policy {
namespace {

TEST_F(StagePlanTest, AFileThatCannotFitIsLeftAlone) {
  plan.room().set_budget(kBytes / 2, 1000);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
  EXPECT_EQ(plan.table().used(), 0U);
}

class Promised : public StagePlanTest {
 protected:
  static inline const uint64_t charge = FileTable::charge(kBytes);

  // A budget of a hundred copies is full of retained ones; how much of it is promised to stay.
  uint64_t promise(uint64_t beyond = 0) {
    plan.room().set_policy(PolicyKind::kShade);
    plan.room().set_budget(100 * charge, 1000);
    plan.room().window(0, 0, now);
    for (int i = 0; i < 100; ++i) {
      plan.room().set_importance(file(i), 1.0F);
      want(i);
      arrive();
      plan.on_read(SessionId{1}, file(i));
    }
    return plan.room().retainable(beyond, now);
  }
};

TEST_F(Promised, MoreCanStayWhereWorkersNeedLessAhead) {
  promise();  // now it is known how large a file is, and how deep the queue
  const uint64_t in_order = promise(60), by_worker = promise(8);
  EXPECT_GT(by_worker, in_order + 5 * charge);
  EXPECT_LE(plan.room().window(60, 0, now), 100 * charge - by_worker);
}

TEST_F(Promised, WhatIsPromisedToStayIsNotTakenByWhatIsAhead) {
  const uint64_t retainable = promise();
  EXPECT_GT(retainable, 40 * charge);
  EXPECT_LT(retainable, 100 * charge);
  EXPECT_LE(plan.room().window(1000, 0, now), 100 * charge - retainable);
  int ahead = 0;
  while (ahead < 100 && want(1000 + ahead)) {
    ++ahead;
    arrive();
  }
  EXPECT_GE(plan.room().retained(), retainable - charge);
  EXPECT_EQ(static_cast<uint64_t>(ahead), (100 * charge - retainable) / charge);
  for (int i = 0; i < ahead; ++i) plan.on_read(SessionId{1}, file(1000 + i));
  EXPECT_TRUE(want(2000)) << "they make way";
  // A copy that was read and not retained comes back as one that is ahead: no more of them either.
  arrive();
  for (int i = 1; i < ahead; ++i) want(2000 + i);
  EXPECT_LE(plan.table().ahead(), 100 * charge - retainable);
  arrive();
  plan.room().set_budget(200 * charge, 1000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(want(3000 + i)) << "nothing is promised of that budget";
    arrive();
  }
}

// The budget is set several times a second: each time what was promised to stay was open to all.
TEST_F(Promised, OutlivesTheSameBudgetAndALargerOne) {
  const uint64_t retainable = promise();
  for (const uint64_t budget : {100, 120}) {
    plan.room().set_budget(budget * charge, 1000);
    for (int i = 0; i < 150; ++i) {
      want(1000 + i);
      arrive();
    }
    EXPECT_GE(plan.room().retained(), retainable - charge) << budget;
    EXPECT_GE(plan.table().ahead(), budget * charge - retainable - charge) << budget;
  }
}

TEST_F(StagePlanTest, AFileThatIsLargerThanWhatMayBeAheadComesAlone) {
  plan.room().set_budget(16 << 20, 1000);
  plan.room().window(0, 0, now);
  const uint64_t most = (16 << 20) - plan.room().retainable(0, now);
  for (const int i : {1, 2}) files.set_bytes(file(i), most + 1);
  EXPECT_TRUE(want(1));
  EXPECT_FALSE(want(2));
  EXPECT_EQ(flying.size(), 1U);
}

// Memory for kRoom copies, of which some are retained as an epoch begins.
class HeadStart : public StagePlanTest {
 protected:
  static constexpr int kRoom = 1400, kMany = 1000;
  static inline const uint64_t charge = FileTable::charge(kBytes);

  // The first `count` files, which were read and retained.
  std::vector<int> retain(int count) {
    plan.room().set_budget(kRoom * charge, 2 * kRoom);
    std::vector<int> kept(static_cast<size_t>(count));
    std::iota(kept.begin(), kept.end(), 0);
    for (const int i : kept) {
      want(i);
      arrive();
      plan.on_read(SessionId{1}, file(i));
    }
    return kept;
  }
  // How many others are fetched ahead, of which `before` have been.
  int fetched_ahead(int before = 0) {
    int ahead = before;
    while (ahead < kMany && want(kRoom + ahead)) {
      ++ahead;
      arrive();
    }
    return ahead;
  }
};

// As an epoch began, all that workers were usually apart was fetched at once, and what the epoch
// would read again was evicted for it.
TEST_F(HeadStart, EvictsNothingThatIsReadAgain) {
  constexpr int kAgain = kRoom - 10;
  const std::vector<int> again = retain(kAgain);
  ASSERT_EQ(plan.room().retained(), kAgain * charge);
  predict(again);
  EXPECT_GT(plan.room().window(8, kMany, now), plan.room().window(8, 0, now));
  plan.room().window(8, kMany, now);
  const int ahead = fetched_ahead();
  EXPECT_GE(ahead, 10);
  EXPECT_LE(ahead, 10 + kRoom / 32) << "but for what keeps the link busy";
  predict({});
  EXPECT_EQ(fetched_ahead(ahead), kMany) << "nothing is read again";
}

// A sample that had been opened, and was read after the next epoch was predicted, did not count as
// one that is read again: in its place the head start evicted hundreds that are.
TEST_F(HeadStart, WhatIsReadAndIsReadAgainLeavesNoRoomAhead) {
  std::vector<int> order = retain(kRoom);
  order.insert(order.begin(), kRoom / 2);
  predict(order);
  plan.on_read(SessionId{1}, file(kRoom / 2));
  EXPECT_EQ(plan.table().awaited(), kRoom * charge);
  plan.room().window(8, kMany, now);
  EXPECT_LE(fetched_ahead(), kRoom / 32) << "but for what keeps the link busy";
  EXPECT_FALSE(want(kRoom + kMany));
  plan.on_read(SessionId{1}, file(kRoom / 2));
  EXPECT_TRUE(want(kRoom + kMany)) << "it is read no more";
}

// The window after a chunk has brought a hundred files.
uint64_t window_after(FileTable* files, bool package) {
  StagePlan plan(files);
  plan.room().set_budget(1ULL << 40, 1000);
  std::vector<SampleFileId> all;
  all.reserve(101);
  for (int i = 0; i < 101; ++i) all.push_back(files->intern("/data/" + std::to_string(i)));
  plan.companions = [&all, package](SampleFileId) {
    return StagePlan::Companions{{all.begin() + 1, all.end()}, package};
  };
  uint64_t now = 1'000'000'000'000;
  EXPECT_EQ(plan.judge(all[0], now, SessionId{1}), FetchVerdict::kTake);
  std::vector<PlannedFetch> flying;
  plan.start_with_companions(all[0], SessionId{1}, now, DatasetId{1}, &flying);
  EXPECT_EQ(flying.size(), 101U);
  for (const PlannedFetch& fetch : flying) {
    now += kMillisecond;
    EXPECT_TRUE(
        plan.on_staged(fetch, kDevice, 10 * kBytes, FileTable::charge(10 * kBytes), now, false));
  }
  return plan.room().window(0, 0, now);
}

// No order waits for what packages bring: the memory of a window for them would retain nothing.
TEST(CopyRoom, SamplesThatComeInChunksNeedAWindowForThemButPackagesNone) {
  FileTable files;
  EXPECT_GT(window_after(&files, false), window_after(&files, true));
}

// A thread that is busy for 50 ms finds many ends at once: not as many a second. The window was
// then several times as large as the storage needs.
TEST_F(StagePlanTest, EndsThatAreNoticedTogetherCountWhenTheyWere) {
  plan.room().set_budget(kMuch, 1'000'000);
  struct Flying {
    PlannedFetch fetch;
    uint64_t begun = 0, ended = 0;
  };
  std::vector<Flying> reads;
  uint64_t idle_from = now;  // the storage delivers one file in each millisecond
  int next = 0;
  for (int turn = 0; turn < 200; ++turn) {
    while (plan.judge(file(next), now, SessionId{1}) == FetchVerdict::kTake) {
      const uint64_t begun = std::max(idle_from, now);
      idle_from = begun + kMillisecond;
      reads.push_back({plan.start(file(next++), SessionId{1}, now), begun, idle_from});
    }
    now += turn % 4 == 0 ? 50 * kMillisecond : 5 * kMillisecond;
    std::erase_if(reads, [this](const Flying& read) {
      if (read.ended > now) return false;
      plan.on_staged(read.fetch, kDevice, kBytes, FileTable::charge(kBytes), now, true,
                     {read.begun, read.ended - read.begun});
      return true;
    });
  }
  EXPECT_GT(next, 1000);
  EXPECT_NEAR(static_cast<double>(plan.mounts().flow(now).bandwidth), 1000.0 * kBytes,
              300.0 * kBytes);
}

TEST_F(StagePlanTest, AFullFileSystemIsABudget) {
  plan.room().set_budget(kMuch, 1000);
  for (int i = 0; i < 8; ++i) want(i);
  arrive();
  for (int i = 0; i < 8; ++i) plan.on_read(SessionId{1}, file(i));
  want(100);
  plan.on_failed(flying.front(), StagePlan::Failure::kFull);
  flying.clear();
  check();
  EXPECT_LT(there.size(), 8U) << "some of what was read makes room";
}

TEST_F(StagePlanTest, ASmallerBudgetHoldsAtOnce) {
  plan.room().set_budget(kMuch, 1000);
  for (int i = 0; i < 8; ++i) want(i);
  arrive();
  for (int i = 0; i < 8; ++i) plan.on_read(SessionId{1}, file(i));
  plan.room().set_budget(4 * FileTable::charge(kBytes), 1000);
  check();
  EXPECT_EQ(there.size(), 4U);
}

TEST_F(StagePlanTest, CopiesOfAnAbandonedOrderAreSpent) {
  plan.room().set_budget(kMuch, 1000);
  predict({1, 2, 3});
  for (int i = 1; i <= 3; ++i) want(i);
  arrive();
  EXPECT_EQ(plan.table().ahead(), 3 * FileTable::charge(kBytes));
  predict({3, 4}, {3});
  EXPECT_EQ(plan.table().ahead(), FileTable::charge(kBytes));
  plan.drop_all();
  check();
  EXPECT_EQ(plan.table().used(), 0U);
}

// Copies that were ahead stayed so when their epoch was left, each time a window more, until
// nothing could be fetched.
TEST_F(StagePlanTest, EpochsThatAreLeftEarlyLeaveNothingAhead) {
  constexpr int kFiles = 100, kWindow = 16, kRead = 6;
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(kFiles / 2 * FileTable::charge(kBytes), 1000);
  std::mt19937 draw(7);
  std::vector<int> order(kFiles);
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> in_flight;
  for (int epoch = 0; epoch < 20; ++epoch) {
    std::shuffle(order.begin(), order.end(), draw);
    std::vector<int> next = in_flight;
    next.insert(next.end(), order.begin(), order.end());
    predict(next, in_flight);
    EXPECT_LE(plan.table().ahead(), (flying.size() + 1) * FileTable::charge(kBytes));
    plan.room().window(kWindow, 0, now);
    for (int i = 0; i < kWindow; ++i) {
      if (want(order[i])) continue;
      arrive();
      EXPECT_TRUE(want(order[i])) << "in epoch " << epoch;
    }
    // The last one begins, and ends within the next epoch.
    for (const int i : in_flight) plan.on_read(SessionId{1}, file(i));
    if (epoch % 2 == 0) arrive();  // or they arrive when they are not needed any more
    for (int i = 0; i < kRead; ++i) plan.on_read(SessionId{1}, file(order[i]));
    in_flight = {order[kRead]};
  }
  predict(order);
  arrive();
  EXPECT_EQ(plan.table().ahead(), 0U);
  EXPECT_GT(plan.room().retained(), 10 * FileTable::charge(kBytes)) << "all are read again";
}

// What was on its way as its epoch was left, and what its reader read meanwhile.
TEST_F(StagePlanTest, WhatArrivesWithoutAReaderStaysIfItIsReadAgain) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(kMuch, 1000);
  for (int i = 1; i <= 3; ++i) want(i);
  predict({1, 2}, {2, 3});
  plan.on_read(SessionId{1}, file(2));
  arrive();
  EXPECT_EQ(plan.table().find(file(1))->state, StagedCopy::State::kRetained);
  EXPECT_EQ(plan.table().find(file(2))->state, StagedCopy::State::kSpent);
  EXPECT_EQ(plan.table().find(file(3))->state, StagedCopy::State::kAhead);
}

// Whole epochs in shuffled order, one reader: how much is fetched anew with memory for a part.
class Epochs : public StagePlanTest, public testing::WithParamInterface<PolicyKind> {
 protected:
  static constexpr int kFiles = 4000;

  // Share of the files that the last of `count` epochs fetched.
  double share(int count, double part) {
    plan.room().set_policy(GetParam());
    plan.room().set_budget(static_cast<uint64_t>(kFiles * part) * FileTable::charge(kBytes),
                           1 << 20);
    std::mt19937 draw(7);
    std::vector<int> order(kFiles);
    std::iota(order.begin(), order.end(), 0);
    for (int epoch = 0; epoch < count; ++epoch) {
      std::shuffle(order.begin(), order.end(), draw);
      predict(order);
      fetched = 0;
      size_t ahead = 0;
      for (size_t at = 0; at < order.size(); ++at) {
        while (ahead < std::min(order.size(), at + 16) && want(order[ahead])) ++ahead;
        arrive();
        if (ahead <= at) ahead = at + 1;  // it went to the original
        plan.on_read(SessionId{1}, file(order[at]));
        check();
      }
    }
    return static_cast<double>(fetched) / kFiles;
  }
};

TEST_P(Epochs, NoMoreIsFetchedThanTheMemoryIsShortOf) {
  // A cache of a part c hits at most c of a uniform reshuffle (facts: even Belady's MIN).
  EXPECT_LE(share(4, 0.2), 0.82);
}
INSTANTIATE_TEST_SUITE_P(Policies, Epochs, testing::Values(PolicyKind::kAuto, PolicyKind::kBelady));

}  // namespace
}  // namespace sluice::policy
