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

}  // namespace
}  // namespace sluice::policy
