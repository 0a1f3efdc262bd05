// Reads of a disk that may hang.
#include "optimizer/stage/disk_reads.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace sluice::optimizer {
namespace {

constexpr DiskReads::Fetch kFirst{policy::SampleFileId{1}, 7},
    kSecondOne{policy::SampleFileId{2}, 8};

TEST(DiskReads, WhatIsLateIsReturnedOnceAndTheDiskHangsUntilItHasEnded) {
  DiskReads reads;
  std::optional<DiskReads::Reading> first(std::in_place, &reads, kFirst);
  EXPECT_TRUE(reads.take_late(now_ns() - kSecond).empty());
  EXPECT_FALSE(reads.hang());
  const uint64_t later = now_ns() + 1;
  EXPECT_EQ(reads.take_late(later), std::vector{kFirst});
  EXPECT_TRUE(reads.hang());
  std::optional<DiskReads::Reading> second(std::in_place, &reads, kSecondOne);
  EXPECT_EQ(reads.take_late(now_ns() + 1), std::vector{kSecondOne});
  EXPECT_TRUE(reads.take_late(now_ns() + 1).empty());
  first.reset();
  EXPECT_TRUE(reads.hang()) << "the other one does";
  second.reset();
  EXPECT_FALSE(reads.hang());
}

TEST(DiskReads, OneThatWasInTimeIsNotMissed) {
  DiskReads reads;
  { const DiskReads::Reading reading(&reads, kFirst); }
  const DiskReads::Reading uncounted(nullptr, kSecondOne);
  EXPECT_TRUE(reads.take_late(now_ns() + kSecond).empty());
  EXPECT_FALSE(reads.hang());
}

}  // namespace
}  // namespace sluice::optimizer
