// Copies of a mount that hangs, and of others meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/stage_plan_data.h"

namespace sluice::policy {
namespace {

class StageHangs : public StagePlanTest {};

// What is fetched first of each dataset counted for one unknown mount, of all sessions.
TEST_F(StageHangs, AMountThatHangsFromItsFirstFileOnHoldsUpNoOtherSession) {
  plan.room().set_budget(kMuch, 1000);
  int hung = 0;
  while (want(hung)) ++hung;  // none of these ever arrives
  ASSERT_EQ(flying.size(), static_cast<size_t>(hung));
  const SampleFileId other = files.intern("/other/1");
  ASSERT_EQ(plan.judge(other, now, SessionId{2}), FetchVerdict::kTake);
  const PlannedFetch fetch = plan.start(other, SessionId{2}, now);
  EXPECT_NE(fetch.device, flying.front().device) << "of the threads that hang";
  EXPECT_TRUE(plan.on_staged(fetch, kDevice + 1, kBytes, FileTable::charge(kBytes), now));
  const SampleFileId next = files.intern("/other/2");
  ASSERT_EQ(plan.judge(next, now, SessionId{2}), FetchVerdict::kTake);
  EXPECT_EQ(plan.start(next, SessionId{2}, now).device, kDevice + 1);
}

TEST_F(StageHangs, SessionsThatHaveEndedLeaveNoMounts) {
  plan.room().set_budget(kMuch, 1000);
  for (uint32_t i = 0; i < 900; ++i) {
    const SampleFileId id = files.intern("/job" + std::to_string(i) + "/1");
    ASSERT_EQ(plan.judge(id, now, SessionId{i}), FetchVerdict::kTake);
    const PlannedFetch fetch = plan.start(id, SessionId{i}, now);
    EXPECT_TRUE(plan.on_staged(fetch, kDevice, kBytes, FileTable::charge(kBytes), now));
  }
  EXPECT_LE(plan.mounts().all().size(), 65U);
}

// The oldest copy waited for its mount, and all others behind it.
TEST_F(StageHangs, AMountThatHangsHoldsUpNoOthersChecks) {
  plan.room().set_budget(kMuch, 1000);
  plan.set_stale(3000 * kMillisecond);
  const auto stage = [this](const std::string& path, uint64_t device) {
    const SampleFileId id = files.intern(path);
    EXPECT_EQ(plan.judge(id, now, SessionId{1}), FetchVerdict::kTake);
    const PlannedFetch fetch = plan.start(id, SessionId{1}, now);
    EXPECT_TRUE(plan.on_staged(fetch, device, kBytes, FileTable::charge(kBytes), now));
    now += kMillisecond;
    return id;
  };
  stage("/data/first", kDevice);
  const SampleFileId other = stage("/other/first", kDevice + 1);
  for (int i = 0; want(i); ++i) {  // on the first one's mount, and none arrives
  }
  now += 2000 * kMillisecond;
  std::vector<PlannedFetch> checks;
  plan.start_checks(now, &checks);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks.front().file, other);
}

// An order that came to a copy whose original was to be looked at again waited until its mount had
// room for the look, and with it all that comes after the copy, from whichever mount.
TEST_F(StageHangs, ALookThatWaitsForItsMountHoldsUpNoOrder) {
  plan.set_stale(3000 * kMillisecond);
  plan.room().set_budget(kMuch, kMuch);
  want(1);
  arrive();
  plan.on_read(SessionId{1}, file(1));
  now += 2000 * kMillisecond;
  int wanted = 10;
  while (want(wanted)) ASSERT_LT(++wanted, 1000);
  EXPECT_EQ(plan.judge(file(1), now, SessionId{1}), FetchVerdict::kNever);
  std::vector<PlannedFetch> checks;
  plan.start_checks(now, &checks);
  EXPECT_TRUE(checks.empty()) << "its mount has no room";
  arrive();
  plan.start_checks(now, &checks);
  ASSERT_EQ(checks.size(), 1U) << "its reader still comes";
  EXPECT_EQ(checks.front().file, file(1));
  EXPECT_TRUE(checks.front().check);
}

// Bytes of a log: the mount's depth limits other fetches only, and these take no part of it.
TEST_F(StageHangs, WhatIsLoggedNeedsNoRoomInItsMountsDepth) {
  plan.room().set_budget(kMuch, kMuch);
  int wanted = 0;
  while (want(wanted)) ASSERT_LT(++wanted, 1000);
  const size_t depth = flying.size();
  plan.is_logged = [&](SampleFileId one) { return one >= file(500); };
  EXPECT_FALSE(want(wanted));
  for (int logged = 500; logged < 600; ++logged) {
    EXPECT_TRUE(want(logged));
    ASSERT_EQ(flying.back().device, CopyMounts::log_of(unknown_mount(SessionId{1})));
  }
  EXPECT_FALSE(want(wanted));
  plan.on_failed(flying.front(), StagePlan::Failure::kError);
  flying.erase(flying.begin());
  EXPECT_TRUE(want(wanted)) << "beside a hundred from the log";
  EXPECT_EQ(flying.size(), depth + 100);
}

}  // namespace
}  // namespace sluice::policy
