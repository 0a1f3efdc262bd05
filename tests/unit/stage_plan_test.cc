// What is staged, retained and evicted: pure decisions.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/stage_plan_data.h"

namespace sluice::policy {
namespace {

TEST_F(StagePlanTest, OneFetchHoweverManyWantIt) {
  plan.room().set_budget(kMuch, 1000);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(want(1));
  EXPECT_EQ(flying.size(), 1U);
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kComing);
  arrive();
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kStaged);
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
}

TEST_F(StagePlanTest, WhatCameFromAPackSaysNothingOfTheStoragesLatency) {
  plan.room().set_budget(kMuch, 1000);
  const auto fetch = [&](int i, uint64_t ns, bool from_storage) {
    ASSERT_EQ(plan.judge(file(i), now, SessionId{1}), FetchVerdict::kTake);
    const PlannedFetch planned = plan.start(file(i), SessionId{1}, now);
    now += ns;
    EXPECT_TRUE(
        plan.on_staged(planned, kDevice, kBytes, FileTable::charge(kBytes), now, from_storage));
  };
  for (int i = 0; i < 20; ++i) fetch(i, 10 * kMillisecond, true);
  EXPECT_EQ(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
  for (int i = 20; i < 60; ++i) fetch(i, kMillisecond / 10, false);
  EXPECT_EQ(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
  for (int i = 60; i < 90; ++i) fetch(i, kMillisecond, true);  // one alone might have been cached
  EXPECT_LT(plan.demand(file(0)).alone_ns, 10 * kMillisecond);
}

TEST_F(StagePlanTest, OriginalsAreReadAheadWhereCopiesAreUseless) {
  constexpr DatasetId kDataset{5};
  plan.room().set_budget(kMuch, 1000);
  const auto fetch = [&](int i) {
    now += kMillisecond;
    EXPECT_EQ(plan.judge(file(i), now, SessionId{1}), FetchVerdict::kTake);
    const PlannedFetch planned = plan.start(file(i), SessionId{1}, now, kDataset);
    now += kMillisecond;
    EXPECT_TRUE(plan.on_staged(planned, kDevice, kBytes, FileTable::charge(kBytes), now));
    there.insert(file(i));
    return planned.to_cache;
  };
  EXPECT_FALSE(fetch(1));
  EXPECT_TRUE(plan.table().offers(file(1), now));
  EXPECT_FALSE(plan.table().offers(file(1), now - 1)) << "it was not there yet";
  EXPECT_FALSE(plan.table().offers(file(2), now));
  want(9);  // of another dataset
  arrive();
  plan.need_originals(kDataset);
  check();
  EXPECT_EQ(there, std::set<SampleFileId>{file(9)}) << "a copy of no use stays";

  EXPECT_TRUE(fetch(2));
  EXPECT_EQ(plan.table().has(file(2)), CopyTable::Has::kStaged);
  EXPECT_FALSE(plan.table().offers(file(2), now));
  EXPECT_GT(plan.table().ahead(), 0U);
  now += 10 * CopyMounts::kMaxDepth * 1'000'000'000ULL;
  std::vector<PlannedFetch> checks;
  plan.on_read(SessionId{2}, file(9));
  plan.start_checks(now, &checks);
  for (const PlannedFetch& one : checks) EXPECT_NE(one.file, file(2)) << "the job sees it itself";
  plan.on_read(SessionId{1}, file(2));
  check();
  EXPECT_FALSE(there.contains(file(2))) << "from now on the kernel's";
  EXPECT_EQ(plan.table().ahead(), 0U);
  EXPECT_TRUE(fetch(2));
  plan.remove_dataset(kDataset);
  EXPECT_FALSE(fetch(3));
}

// A chunk is read whole for the first of its samples: the others are retained until their turn.
// What the policy gives up and a reader is about to need is ahead from then on: others must go for
// it, or there seems to be no room.
TEST_F(StagePlanTest, ThereIsRoomThoughAReaderNeedsWhatIsLeastImportant) {
  plan.room().set_policy(PolicyKind::kShade);
  plan.room().set_budget(8 * FileTable::charge(kBytes), 1000);
  for (int i = 1; i <= 8; ++i) {
    want(i);
    arrive();
    plan.room().set_importance(file(i), static_cast<float>(i));
    plan.on_read(SessionId{1}, file(i));
    check();
  }
  ASSERT_EQ(plan.room().retained(), 8 * FileTable::charge(kBytes));
  for (const int i : {1, 2}) EXPECT_EQ(plan.judge(file(i), now, SessionId{1}), FetchVerdict::kHere);
  EXPECT_TRUE(plan.room().make_room(FileTable::charge(kBytes)));
  for (const int i : {1, 2}) EXPECT_NE(plan.table().find(file(i)), nullptr) << i;
  EXPECT_EQ(plan.table().find(file(3)), nullptr);
  EXPECT_NE(plan.table().find(file(4)), nullptr);
  EXPECT_FALSE(plan.room().make_room(7 * FileTable::charge(kBytes))) << "two are needed";
}

TEST_F(StagePlanTest, AnotherPolicyUsesWhatTheOneBeforeKnew) {
  plan.room().set_policy(PolicyKind::kShade);
  plan.room().set_budget(4 * FileTable::charge(kBytes), 1000);
  const auto read = [&](int i, float importance) {
    want(i);
    arrive();
    plan.room().set_importance(file(i), importance);
    plan.on_read(SessionId{1}, file(i));
    check();
  };
  for (const int i : {1, 2, 3}) read(i, static_cast<float>(i % 3) + 1);  // 2 matters most, then 1
  for (const PolicyKind other :
       {PolicyKind::kNeeded, PolicyKind::kAuto, PolicyKind::kLru, PolicyKind::kShade}) {
    plan.room().set_policy(other);
    EXPECT_EQ(plan.room().retained(), 3 * FileTable::charge(kBytes)) << policy_info(other).name;
  }
  plan.room().set_budget(2 * FileTable::charge(kBytes), 1000);
  check();
  EXPECT_EQ(there, (std::set<SampleFileId>{file(1), file(2)}));
}

// The policy was not notified of readings that it has nothing to decide of: what was read by both
// of two jobs was needed soonest of all from then on.
TEST_F(StagePlanTest, WhatBothHaveReadIsNotNeededAnyMore) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(2 * FileTable::charge(kBytes), 1000);
  predict({1, 1, 2, 2, 3, 3});
  want(1);
  want(1);  // for the second job
  arrive();
  plan.on_read(SessionId{1}, file(1));
  plan.on_read(SessionId{2}, file(1));
  plan.on_read(SessionId{1}, file(2));  // it was not there
  want(2);
  plan.on_read(SessionId{1}, file(2));  // it is on its way, and its readers did not wait
  arrive();
  for (const int i : {2, 3}) {
    want(i);
    arrive();
    plan.room().set_importance(file(i), 1);
    plan.on_read(SessionId{1}, file(i));
    check();
  }
  EXPECT_EQ(there, (std::set<SampleFileId>{file(2), file(3)})) << "the first matters least";
}

TEST_F(StagePlanTest, WhatAnotherJobStillWantsStays) {
  plan.room().set_policy(PolicyKind::kMinIo);
  plan.room().set_budget(3 * FileTable::charge(kBytes), 1000);
  want(1);
  want(1);  // for a second job
  arrive();
  plan.on_read(SessionId{1}, file(1));
  want(2);
  want(3);
  arrive();
  EXPECT_FALSE(want(4)) << "two are ahead, one is wanted once more";
  plan.on_read(SessionId{2}, file(1));
  EXPECT_EQ(there.count(file(1)), 1U);
}

// A verdict over what was wasted drops copies, which wastes more: it was lost, by an iterator that
// had become invalid.
TEST(CopyTable, WhatIsWastedWhileTheWastedAreTakenIsTakenNext) {
  CopyTable table;
  for (const SampleFileId file : {SampleFileId{1}, SampleFileId{2}}) {
    StagedCopy& copy = table.add(file, 4096);
    copy.dataset = DatasetId{10 + number(file)};
    copy.took_ns = kMillisecond;
  }
  table.evict(SampleFileId{1});
  for (const CopyTable::Wasted& wasted : table.take_wasted()) {
    EXPECT_EQ(wasted.dataset, DatasetId{11});
    table.evict(SampleFileId{2});
  }
  const auto next = table.take_wasted();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].dataset, DatasetId{12});
  EXPECT_TRUE(table.take_wasted().empty());
  EXPECT_EQ(table.take_evicted(), (std::vector<SampleFileId>{SampleFileId{1}, SampleFileId{2}}));
}

TEST_F(StagePlanTest, AFileThatChangedWhileItCameIsNotTaken) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.drop(file(1));
  arrive();
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kNot);
  EXPECT_EQ(plan.table().used(), 0U);
  EXPECT_TRUE(want(1)) << "the next time it is fetched anew";
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, AnOldLookIsRepeatedBeforeItsReaderComes) {
  plan.set_stale(3000 * kMillisecond);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  plan.on_read(SessionId{1}, file(1));
  now += 2000 * kMillisecond;
  want(1);
  ASSERT_EQ(flying.size(), 1U);
  EXPECT_TRUE(flying.front().check);
  arrive();
  EXPECT_EQ(fetched, 1);
  now += 2000 * kMillisecond;
  want(1);
  ASSERT_EQ(flying.size(), 1U);
  plan.on_failed(flying.front(), StagePlan::Failure::kChanged);
  flying.clear();
  check();
  EXPECT_TRUE(there.empty());
  plan.start_checks(now, &flying);
  ASSERT_EQ(flying.size(), 1U) << "its reader still comes";
  EXPECT_FALSE(flying.front().check);
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, WhereEveryReaderLooksNoOtherDoes) {
  plan.set_stale(0);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  now += 5000 * kMillisecond;
  plan.start_checks(now, &flying);
  EXPECT_TRUE(flying.empty());
  want(1);
  EXPECT_TRUE(flying.empty());
}

TEST_F(StagePlanTest, WhatWaitsForItsReaderIsLookedAtNowAndThen) {
  plan.set_stale(3000 * kMillisecond);
  plan.room().set_budget(kMuch, 1000);
  want(1);
  want(2);
  arrive();
  plan.on_read(SessionId{1}, file(2));
  for (int i = 1; i <= 3; ++i) {
    now += 1600 * kMillisecond;
    plan.start_checks(now, &flying);
    ASSERT_EQ(flying.size(), 1U) << "the one that was not read yet";
    EXPECT_TRUE(flying.front().check);
    EXPECT_EQ(flying.front().file, file(1));
    arrive();
    plan.start_checks(now, &flying);
    EXPECT_TRUE(flying.empty());
  }
}

TEST_F(StagePlanTest, ALookWhoseCopyWentMeanwhileMeansNothing) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  arrive();
  now += 2000 * kMillisecond;
  want(1);
  const PlannedFetch look = flying.front();
  flying.clear();
  plan.drop(file(1));
  check();
  want(1);  // fetched again
  plan.on_failed(look, StagePlan::Failure::kChanged);
  EXPECT_EQ(plan.table().has(file(1)), CopyTable::Has::kComing);
  EXPECT_FALSE(plan.on_valid(look));
  arrive();
  EXPECT_EQ(there.size(), 1U);
}

TEST_F(StagePlanTest, ALateFetchIsNotAheadOfAnyReader) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.on_read(SessionId{1}, file(1));  // from the original
  arrive();
  EXPECT_EQ(plan.table().ahead(), 0U);
}

TEST_F(StagePlanTest, RefusedOnceIsRefusedUntilTheNextOrder) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  plan.on_failed(flying.front(), StagePlan::Failure::kError);
  flying.clear();
  EXPECT_TRUE(want(1));
  EXPECT_TRUE(flying.empty());
  predict({1});
  want(1);
  EXPECT_EQ(flying.size(), 1U);
  plan.on_failed(flying.front(), StagePlan::Failure::kMount);
  flying.clear();
  predict({1, 2});
  want(1);
  want(2);
  EXPECT_TRUE(flying.empty()) << "nothing of that folder any more";
}

TEST_F(StagePlanTest, AnAbandonedFetchTakesNoRoomAndItsResultIsOfNoUse) {
  plan.room().set_budget(kMuch, 1000);
  want(1);
  const PlannedFetch hangs = flying.front();
  flying.clear();
  plan.on_failed(hangs, StagePlan::Failure::kAbandoned);
  EXPECT_EQ(plan.table().used(), 0U);
  EXPECT_EQ(plan.mounts().in_flight(), 0U);
  EXPECT_TRUE(want(1));
  EXPECT_EQ(flying.size(), 1U) << "it is fetched again";
  plan.on_failed(hangs, StagePlan::Failure::kAbandoned);
  EXPECT_EQ(plan.mounts().in_flight(), 1U) << "that was another fetch";
  EXPECT_FALSE(plan.on_staged(hangs, kDevice, kBytes, FileTable::charge(kBytes), now));
  const PlannedFetch answered = flying.front();
  arrive();
  plan.on_failed(answered, StagePlan::Failure::kAbandoned);
  EXPECT_TRUE(plan.table().has(file(1)) == CopyTable::Has::kStaged) << "what is there stays";
}

}  // namespace
}  // namespace sluice::policy
