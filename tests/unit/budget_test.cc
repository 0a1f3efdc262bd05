// How much memory may be used: limits of host and cgroups, pressure, and the stage's part.
#include "policy/planner/budget.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

TEST(Budget, IsTheLeastOfWishHostAndEveryCgroupLevel) {
  const uint64_t gib = 1024 * kMiB;
  MemoryFacts facts;
  facts.available = 10 * gib;
  EXPECT_EQ(budget_bytes(facts, 0), 2 * gib);
  EXPECT_EQ(budget_bytes(facts, gib), gib);
  EXPECT_EQ(budget_bytes(facts, 5 * gib), 2 * gib);
  facts.cgroups.push_back({kUnlimited, 3 * gib, 0});
  EXPECT_EQ(budget_bytes(facts, 0), 2 * gib);
  facts.cgroups.push_back({150 * kMiB, 100 * kMiB, 50 * kMiB});  // page cache gives way
  EXPECT_EQ(budget_bytes(facts, 0), 20 * kMiB);
  facts.cgroups.push_back({150 * kMiB, 200 * kMiB, 0});  // over its limit
  EXPECT_EQ(budget_bytes(facts, 0), kMinBudget);
}

TEST(Budget, ReadsTheKernelsTexts) {
  EXPECT_EQ(parse_limit("9223372036854771712\n"), kUnlimited);
  EXPECT_EQ(parse_limit("max\n"), kUnlimited);
  EXPECT_EQ(parse_limit("157286400\n"), 157286400u);
  EXPECT_EQ(parse_limit(""), kUnlimited);
  EXPECT_EQ(parse_limit("12x"), kUnlimited);
  const char* meminfo = "MemTotal:       24576000 kB\nMemAvailable:   1000 kB\n";
  EXPECT_EQ(parse_field(meminfo, "MemAvailable"), 1024000u);
  const char* stat = "inactive_file 5\ntotal_inactive_file 7\n";
  EXPECT_EQ(parse_field(stat, "inactive_file"), 5u);
  EXPECT_EQ(parse_field(stat, "total_inactive_file"), 7u);
  EXPECT_EQ(parse_field(stat, "inactive"), 0u);
  EXPECT_EQ(parse_field("", "x"), 0u);
}

TEST(Budget, WhatIsStagedCanBeGivenUp) {
  MemoryFacts facts;
  facts.available = 800 << 20;
  EXPECT_EQ(budget_bytes(facts, 0, 200 << 20), 200U << 20);
  EXPECT_EQ(memory_left(facts, 200 << 20), 1000U << 20);
}

TEST(Budget, PressureIsRead) {
  EXPECT_DOUBLE_EQ(parse_pressure("some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=0"),
                   12.5);
  EXPECT_EQ(parse_pressure(""), 0);
  EXPECT_EQ(parse_pressure("full avg10=3"), 0);
}

TEST(Budget, UnderPressureLessAndLessThenSlowlyMore) {
  PressureBrake brake;
  EXPECT_EQ(brake.next(0), 1);
  double share = 1;
  for (int i = 0; i < 5; ++i) {
    const double next = brake.next(20);
    EXPECT_LT(next, share);
    share = next;
  }
  for (int i = 0; i < 100; ++i) brake.next(99);
  EXPECT_GT(brake.next(99), 0) << "never nothing";
  double last = brake.next(0);
  EXPECT_LT(last, 0.1) << "not at once";
  for (int i = 0; i < 100; ++i) last = brake.next(0);
  EXPECT_EQ(last, 1);
}

TEST(Budget, CacheAndStageShareItAndTheStageGivesWayUnderPressure) {
  MemoryFacts facts;
  facts.available = 10 * 1024 * kMiB;
  MemoryShares shares;
  shares.update(facts, 0, 0);
  const uint64_t budget = 2048 * kMiB;
  EXPECT_EQ(shares.budget(), budget);
  EXPECT_EQ(shares.stage(0, 0), budget);
  EXPECT_EQ(shares.stage(budget / 4, 0), budget / 4 * 3);
  EXPECT_EQ(shares.stage(budget, 0), budget / 2) << "never less than half";
  EXPECT_EQ(shares.cache(0), budget);
  EXPECT_EQ(shares.cache(budget), budget / 2);
  EXPECT_EQ(shares.stage(0, 5000 * kMiB), 5000 * kMiB) << "a job that asks for more";
  EXPECT_EQ(shares.stage(0, 9000 * kMiB), 7680 * kMiB) << "as far as it is there";
  facts.pressure = 20;
  uint64_t before = budget;
  for (int second = 0; second < 5; ++second) {
    shares.update(facts, 0, 0);
    EXPECT_LT(shares.stage(0, 0), before);
    EXPECT_LT(shares.stage(0, 5000 * kMiB), 5000 * kMiB);
    EXPECT_EQ(shares.cache(0), budget) << "the kernel takes that back by itself";
    before = shares.stage(0, 0);
  }
  facts.pressure = 0;
  shares.update(facts, 0, 0);
  EXPECT_GT(shares.stage(0, 0), before);
  EXPECT_LT(shares.stage(0, 0), budget) << "not at once";
}

// Tasks that wait for memory in a cgroup of their own count for the host, which has memory left:
// a stage of 17 MiB was cut to 272 KiB, which no other task would have noticed.
TEST(Budget, PressureLeavesTheStageWhatWouldRelieveNothing) {
  MemoryFacts facts;
  facts.pressure = 90;
  MemoryShares shares;
  const auto under_pressure = [&](uint64_t available, uint64_t wish) {
    facts.available = available;
    for (int second = 0; second < 100; ++second) shares.update(facts, wish, 0);
    return shares.stage(0, wish);
  };
  EXPECT_EQ(under_pressure(6400 * kMiB, 17 * kMiB), 17 * kMiB);
  EXPECT_EQ(under_pressure(6400 * kMiB, 1000 * kMiB), 100 * kMiB);
  EXPECT_LT(under_pressure(64 * kMiB, 40 * kMiB), 2 * kMiB) << "it would relieve";
}

}  // namespace
}  // namespace sluice::policy
