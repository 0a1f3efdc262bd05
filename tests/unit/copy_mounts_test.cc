// What is in flight on a mount beside packages that come from there.
#include "policy/copies/copy_mounts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace sluice::policy {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kDevice = 42, kLatencyNs = 4 * kMillisecond, kEachNs = kMillisecond / 2;

// A mount that answers 2,000 files a second, each after 4 ms, with as many in flight as it allows.
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

// A package took as long as fifty files. How many of its samples are of use says nothing about how
// long it is on the link: by these the queue was a third of what it had to be.
TEST(CopyMountsTest, WhatIsInFlightOutlastsAPackage) {
  FileTable files;
  CopyMounts mounts(&files);
  BusyMount mount(&mounts);
  mount.run(3000 * kMillisecond);
  const unsigned alone = mount.depth();
  EXPECT_LT(alone, 45U);
  mounts.begin_package(mount.now);
  EXPECT_EQ(mount.depth(), alone) << "nothing is known of packages";
  mounts.end_package(25 * kMillisecond);
  mounts.begin_package(mount.now);
  EXPECT_GE(mount.depth(), alone + 40) << "for the 25 ms of a package";
  for (int i = 0; i < 10; ++i) mounts.end_package(60 * kMillisecond);
  mounts.end_package(25 * kMillisecond);
  mounts.begin_package(mount.now);
  EXPECT_LE(mount.depth(), alone + 60) << "what waited behind the queue made it longer";
  for (int i = 0; i < 100; ++i) mounts.end_package(5000 * kMillisecond);
  mounts.begin_package(mount.now);
  EXPECT_GE(mount.depth(), alone + 80);
  EXPECT_LE(mount.depth(), alone + 130) << "a mount that hangs is not the link";
  mounts.end_package(0);
  mount.run(StorageModel::kBusyForNs + kMillisecond);
  EXPECT_LE(mount.depth(), 2 * alone) << "long after the last package";
}

}  // namespace
}  // namespace sluice::policy
