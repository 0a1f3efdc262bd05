// What is in flight on a mount beside packages that come from there.
#include "policy/copies/copy_mounts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace sluice::policy {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kDevice = 42, kLatencyNs = 4 * kMillisecond, kEachNs = kMillisecond;

// A mount that answers 1,000 files a second, each after 4 ms, with as many in flight as it allows.
class BusyMount {
 public:
  explicit BusyMount(CopyMounts* mounts) : mounts_(*mounts) {}

  void run(uint64_t for_ns) {
    for (const uint64_t end = now + for_ns; now < end;) {
      while (!mounts_.at(kDevice).busy(now)) {
        StagedCopy copy;
        copy.device = kDevice;
        mounts_.begin(copy, now);
        free_ = std::max(free_ + kEachNs, now + kLatencyNs);
        flying_.emplace_back(free_, copy);
      }
      const auto [at, copy] = flying_.front();
      flying_.pop_front();
      now = at;
      mounts_.end(copy, 100'000, CopyMounts::Counts::kRateAndLatency, now,
                  {copy.issued_ns, now - copy.issued_ns});
    }
  }
  unsigned depth() const { return mounts_.at(kDevice).model.depth(now); }

  uint64_t now = 1'000'000'000'000;

 private:
  CopyMounts& mounts_;
  std::deque<std::pair<uint64_t, StagedCopy>> flying_;
  uint64_t free_ = 0;
};

class PackagesTest : public testing::Test {
 protected:
  PackagesTest() { mount.run(3000 * kMillisecond); }

  // Packages that take so long, one after the other, each a while after the one before.
  void packages(int count, uint64_t take_ns, uint64_t every_ns) {
    for (int i = 0; i < count; ++i) {
      mount.now += every_ns;
      mounts.begin_package(mount.now);
      mounts.end_package(take_ns);
    }
    mounts.begin_package(mount.now);
  }

  FileTable files;
  CopyMounts mounts{&files};
  BusyMount mount{&mounts};
};

// How many of a package's samples are of use says nothing about how long it is on the link: by
// these the queue was a third of what it had to be.
TEST_F(PackagesTest, WhatIsInFlightOutlastsThem) {
  const unsigned alone = mount.depth();
  EXPECT_LT(alone, 25U);
  mounts.begin_package(mount.now);
  EXPECT_EQ(mount.depth(), alone) << "nothing is known of packages";
  packages(50, 25 * kMillisecond, 25 * kMillisecond);
  EXPECT_GE(mount.depth(), alone + 20) << "for the 25 ms of a package";
  packages(10, 60 * kMillisecond, 25 * kMillisecond);
  packages(1, 25 * kMillisecond, 25 * kMillisecond);
  EXPECT_LE(mount.depth(), alone + 30) << "what waited behind the queue made it longer";
  packages(100, 5000 * kMillisecond, 25 * kMillisecond);
  EXPECT_GE(mount.depth(), alone + 40);
  EXPECT_LE(mount.depth(), alone + 60) << "a mount that hangs is not the link";
  mounts.end_package(0);
  mount.run(StorageModel::kBusyForNs + kMillisecond);
  EXPECT_LE(mount.depth(), 2 * alone) << "long after the last package";
}

// The longer queue took memory from what is retained: at 12 % of substitutes hits fell from 0.337
// to 0.316 for packages that held nothing up.
TEST_F(PackagesTest, WhereTheyAreRareTheQueueStaysShort) {
  const unsigned alone = mount.depth();
  packages(100, 20 * kMillisecond, 100 * kMillisecond);
  EXPECT_LE(mount.depth(), alone + 5);
  packages(100, 5000 * kMillisecond, 900 * kMillisecond);
  EXPECT_LE(mount.depth(), alone + 5) << "slow ones";
  packages(100, 20 * kMillisecond, 25 * kMillisecond);
  EXPECT_GE(mount.depth(), alone + 15);
}

TEST_F(PackagesTest, AfterAPauseTheyComeAsOftenAsBefore) {
  const unsigned alone = mount.depth();
  packages(100, 20 * kMillisecond, 25 * kMillisecond);
  packages(1, 20 * kMillisecond, 2000 * kMillisecond);
  EXPECT_GE(mount.depth(), alone + 15);
}

}  // namespace
}  // namespace sluice::policy
