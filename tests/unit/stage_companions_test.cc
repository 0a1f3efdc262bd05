// Files that come with another's fetch, since a chunk is read whole for it.
#include <utility>
#include <vector>

#include "tests/unit/stage_plan_data.h"

namespace sluice::policy {
namespace {

TEST_F(StagePlanTest, CompanionsOfAFetchStayUntilTheyAreRead) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(6 * FileTable::charge(kBytes), 1000);
  plan.companions = [this](SampleFileId first) {
    return StagePlan::Companions{first == file(1) ? numbers({2, 3, 4}) : numbers({})};
  };
  want(3);
  arrive();
  plan.on_read(SessionId{1}, file(3));
  predict({1, 4, 2, 5});
  ASSERT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kTake);
  plan.start_with_companions(file(1), SessionId{1}, now, DatasetId{1}, &flying);
  ASSERT_EQ(flying.size(), 3U) << "a copy that is there comes again, or one does not come";
  for (const PlannedFetch& one : flying) EXPECT_EQ(one.chunk_for, flying.front().token);
  arrive();
  EXPECT_EQ(plan.table().ahead(), FileTable::charge(kBytes)) << "only the first is the window's";
  for (const int other : {2, 4}) {
    EXPECT_EQ(plan.table().find(file(other))->state, StagedCopy::State::kRetained);
  }
  // Others come and go; those that are needed stay.
  for (int i = 10; i < 20; ++i) {
    want(i);
    arrive();
    plan.on_read(SessionId{1}, file(i));
    check();
  }
  for (const int i : {1, 4, 2}) {
    EXPECT_EQ(plan.table().has(file(i)), CopyTable::Has::kStaged) << i;
    const FetchVerdict here = i == 1 ? FetchVerdict::kHere : FetchVerdict::kNever;
    EXPECT_EQ(plan.judge(file(i), now, SessionId{1}), here) << "what was brought counts as ahead";
    const Hit hit = plan.on_read(SessionId{1}, file(i));
    EXPECT_GT(hit.first_bytes, 0U);
  }
}

// Its chunk was to be read for it, and was not, since a copy of it had stayed: the others were
// fetched one by one.
TEST_F(StagePlanTest, AFileThatBringsOthersIsFetchedAlthoughItHasACopy) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(6 * FileTable::charge(kBytes), 1000);
  bool brings = false;
  plan.companions = [&](SampleFileId) {
    return StagePlan::Companions{std::exchange(brings, false) ? numbers({2, 3}) : numbers({})};
  };
  plan.brings = [&](SampleFileId first) { return brings && first == file(1); };
  want(1);
  arrive();
  plan.on_read(SessionId{1}, file(1));
  ASSERT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kHere);
  EXPECT_TRUE(plan.table().retains(file(1)));
  plan.on_read(SessionId{1}, file(1));
  brings = true;
  ASSERT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kTake);
  plan.start_with_companions(file(1), SessionId{1}, now, DatasetId{1}, &flying);
  ASSERT_EQ(flying.size(), 3U);
  EXPECT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kNever) << "fetched twice";
  check();
  arrive();
  EXPECT_FALSE(plan.table().retains(file(1))) << "fetched for this very read";
  EXPECT_TRUE(plan.table().retains(file(2))) << "it came before it was requested";
}

// Of one whose chunk could not be read the first file was taken for all of it: the queue was too
// short for the next thirty.
TEST_F(StagePlanTest, OnlyPackagesThatWereReadAreTimed) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(20 * FileTable::charge(kBytes), 1000);
  std::vector<int> others = {2, 3};
  plan.companions = [&](SampleFileId) {
    return StagePlan::Companions{numbers(std::exchange(others, {})), true};
  };
  const auto fetch = [&](int i, bool from_storage) {
    EXPECT_EQ(plan.judge(file(i), now, SessionId{1}), FetchVerdict::kTake);
    plan.start_with_companions(file(i), SessionId{1}, now, DatasetId{1}, &flying);
    const PlannedFetch first = flying.front();
    plan.on_staged(first, kDevice, kBytes, FileTable::charge(kBytes), now, from_storage,
                   {now, 5 * kMillisecond});
    there.insert(file(i));
    flying.erase(flying.begin());
    arrive();
    return first.package;
  };
  EXPECT_TRUE(fetch(1, true)) << "a package";
  EXPECT_EQ(plan.mounts().package_ns(), 0U) << "its chunk was not read";
  EXPECT_FALSE(fetch(4, false)) << "nothing comes with it";
  EXPECT_EQ(plan.mounts().package_ns(), 0U);
  others = {6, 7};
  EXPECT_TRUE(fetch(5, false));
  EXPECT_EQ(plan.mounts().package_ns(), 5 * kMillisecond);
}

TEST_F(StagePlanTest, CompanionsTakeNoRoomThatIsNotThere) {
  plan.room().set_policy(PolicyKind::kNeeded);
  plan.room().set_budget(3 * FileTable::charge(kBytes), 1000);
  plan.companions = [this](SampleFileId first) {
    return StagePlan::Companions{first == file(1) ? numbers({2, 3, 4, 5, 6}) : numbers({})};
  };
  predict({1, 2, 3, 4, 5, 6});
  for (int i = 1; i <= 6; ++i) files.set_bytes(file(i), kBytes);
  ASSERT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kTake);
  plan.start_with_companions(file(1), SessionId{1}, now, DatasetId{1}, &flying);
  EXPECT_EQ(flying.size(), 3U);
  arrive();
  EXPECT_EQ(plan.on_read(SessionId{1}, file(1)).first_bytes, kBytes);
  check();
}

}  // namespace
}  // namespace sluice::policy
