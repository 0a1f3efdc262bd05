// The scheduler in a simulated world: how long readers take, what they find cached, what is wasted.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/scheduler_world.h"

namespace sluice::test {
namespace {

TEST(Scheduler, AReaderBelowTheLinksRateFindsEverything) {
  for (const Signs signs : {Signs::kTrips, Signs::kReads}) {
    for (const double latency : {0.0005, 0.003}) {
      World world({latency, 400e6});
      const double seconds = scan(world, 0, 1024 * kMiB, 300e6, signs);
      EXPECT_LE(seconds, 1024.0 * kMiB / 300e6 * 1.01) << "latency " << latency;
    }
  }
}

TEST(Scheduler, AReaderAboveTheLinksRateGetsTheLink) {
  for (const Signs signs : {Signs::kTrips, Signs::kReads}) {
    for (const double latency : {0.0005, 0.003}) {
      World world({latency, 400e6});
      const double seconds = scan(world, 0, 1024 * kMiB, 0, signs);
      EXPECT_GE(1024.0 * kMiB / seconds, 0.97 * 400e6) << "latency " << latency;
    }
  }
}

TEST(Scheduler, NothingIsReadTwiceNorBehindTheReader) {
  World world;
  IntervalSet seen;
  world.on_read = [&](uint64_t, const PlannedRead& read) {
    EXPECT_EQ(seen.add(read.range), read.range.length());
    EXPECT_LE(read.range.length(), 1024 * kKiB);
  };
  scan(world, 0, 256 * kMiB, 350e6, Signs::kTrips);
  EXPECT_GT(seen.bytes(), 250 * kMiB);
}

TEST(Scheduler, WhatIsCachedIsPassedOverAndCounted) {
  World world;
  world.cache[FileId{1}].add({0, 200 * kMiB});
  scan(world, 0, 400 * kMiB, 300e6, Signs::kTrips);
  EXPECT_GE(metric(world, SessionId{1}, SessionMetric::already_cached_bytes), 190 * kMiB);
  EXPECT_LE(world.bytes_read, 400 * kMiB);  // the second half, and what lies ahead of it
  EXPECT_GE(world.bytes_read, 190 * kMiB);
}

TEST(Scheduler, CountersAddUp) {
  World world;
  scan(world, 0, 512 * kMiB, 300e6, Signs::kTrips);
  world.advance_to(world.now() + 2'000'000'000);
  world.scheduler.settle_session(SessionId{1}, world.now());
  const uint64_t read = metric(world, SessionId{1}, SessionMetric::precached_bytes);
  const uint64_t used = metric(world, SessionId{1}, SessionMetric::precached_used_bytes);
  const uint64_t unused = metric(world, SessionId{1}, SessionMetric::precached_unused_bytes);
  EXPECT_EQ(read, world.bytes_read);
  EXPECT_LE(used + unused, read);
  EXPECT_GE(used + unused + metric(world, SessionId{1}, SessionMetric::late_bytes), read);
  EXPECT_GE(used, 500 * kMiB);
  EXPECT_EQ(world.scheduler.accounts().outstanding(), 0u);
}

TEST(Scheduler, RandomReadsWasteLittle) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    World world({0.0005, 400e6}, 64ULL << 30);
    std::mt19937_64 random(seed);
    uint64_t time = 0;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t offset = random() % (64ULL << 30) / 4096 * 4096;
      world.access(FileId{1}, {Access::Kind::kRead, offset, 4096, time += 1'000'000, 1ULL << 32,
                               SessionId{1}});
    }
    world.advance_to(time + 1'000'000'000);
    EXPECT_LE(world.bytes_read, 32 * kMiB) << seed;
  }
}

// LMDB begins with its meta pages, then the root, branches, and only then the data.
TEST(Scheduler, StrayFirstAccessesDoNotDelayTheRun) {
  World world({0.003, 400e6});
  uint64_t time = 0;
  for (const uint64_t stray : {0 * kMiB, 900 * kMiB, 500 * kMiB, 700 * kMiB}) {
    world.access(FileId{1}, {Access::Kind::kTrip, stray, kCell, time, 1ULL << 32, SessionId{1}});
    time = world.demand(FileId{1}, {stray, stray + 4096}, time);
  }
  const uint64_t before = world.bytes_read;
  world.advance_to(time);
  scan(world, 100 * kMiB, 300 * kMiB, 300e6, Signs::kTrips);
  EXPECT_LE(before, 4 * kMiB);
  world.scheduler.settle_session(SessionId{1}, world.now());
  uint64_t strays = 0;
  for (const uint64_t stray : {0 * kMiB, 900 * kMiB, 500 * kMiB, 700 * kMiB}) {
    strays += world.cached(FileId{1}, {stray, stray + 16 * kMiB});
  }
  EXPECT_LE(strays, 8 * kMiB);
}

TEST(Scheduler, OutstandingBytesStayWithinTheBudget) {
  for (const uint64_t budget : {4 * kMiB, 20 * kMiB, 100 * kMiB}) {
    World world;
    world.scheduler.accounts().set_budget(budget);
    scan(world, 0, 400 * kMiB, 200e6, Signs::kReads);
    EXPECT_LE(world.most_outstanding, budget);
    EXPECT_GT(world.bytes_read, 300 * kMiB) << budget;
  }
}

TEST(Scheduler, ASessionsOwnMemoryBoundsItToo) {
  World world;
  world.scheduler.add_session(SessionId{1}, {}, true, 8 * kMiB);
  scan(world, 0, 200 * kMiB, 200e6, Signs::kReads);
  EXPECT_LE(world.most_outstanding, 8 * kMiB);
}

TEST(Scheduler, ReadStreamsOfFilesAboveTheBudgetAreDroppedBehind) {
  World world;
  world.scheduler.accounts().set_budget(64 * kMiB);
  scan(world, 0, 512 * kMiB, 200e6, Signs::kReads);
  EXPECT_GE(world.bytes_dropped, 440 * kMiB);
  EXPECT_LE(world.cache[FileId{1}].bytes(), 64 * kMiB + 32 * kMiB);
  EXPECT_GE(metric(world, SessionId{1}, SessionMetric::dropped_bytes), 440 * kMiB);
}

TEST(Scheduler, FilesThatFitAreNeverDropped) {
  World world({}, 200 * kMiB);
  world.scheduler.accounts().set_budget(256 * kMiB);
  scan(world, 0, 200 * kMiB, 200e6, Signs::kReads);
  EXPECT_EQ(world.bytes_dropped, 0u);
}

TEST(Scheduler, MappedRangesAreDroppedOnlyOnceZapped) {
  World world;
  world.scheduler.accounts().set_budget(64 * kMiB);
  scan(world, 0, 128 * kMiB, 200e6, Signs::kTrips);
  EXPECT_EQ(world.bytes_dropped, 0u);
  world.scheduler.streams().on_unmapped(FileId{1}, {0, 64 * kMiB});
  scan(world, 128 * kMiB, 256 * kMiB, 200e6, Signs::kTrips);
  EXPECT_GE(world.bytes_dropped, 56 * kMiB);
  EXPECT_LE(world.bytes_dropped, 64 * kMiB);
}

TEST(Scheduler, WhatWasCachedBeforeUsIsNotDropped) {
  World world;
  world.scheduler.accounts().set_budget(64 * kMiB);
  world.cache[FileId{1}].add({100 * kMiB, 200 * kMiB});
  scan(world, 0, 400 * kMiB, 200e6, Signs::kReads);
  EXPECT_EQ(world.cached(FileId{1}, {100 * kMiB, 200 * kMiB}), 100 * kMiB);
}

TEST(Scheduler, ASlowerReaderBehindRetainsWhatItNeeds) {
  World world;
  world.scheduler.add_session(SessionId{2}, {}, true, 0);
  world.scheduler.accounts().set_budget(256 * kMiB);
  uint64_t time = 0;
  // Two readers 64 MiB apart. What the first passed the second still wants.
  for (uint64_t at = 0; at < 512 * kMiB; at += kMiB) {
    time = world.demand(FileId{1}, {at, at + kMiB}, time + 5'000'000);
    world.access(FileId{1}, {Access::Kind::kRead, at, kMiB, time, 1ULL << 32, SessionId{1}});
    if (at < 64 * kMiB) continue;
    const uint64_t behind = at - 64 * kMiB;
    // Where it begins its coming was unknown.
    if (behind >= 16 * kMiB) {
      EXPECT_EQ(world.cached(FileId{1}, {behind, behind + kMiB}), kMiB) << behind / kMiB;
    }
    world.access(FileId{1}, {Access::Kind::kRead, behind, kMiB, time, 2ULL << 32, SessionId{2}});
  }
}

TEST(Scheduler, TrainAndTestFilesInTurnsKeepTheirStreams) {
  World world({}, 2048 * kMiB);
  world.scheduler.accounts().set_budget(4096 * kMiB);
  world.add_file(FileId{2}, 512 * kMiB, 1);
  uint64_t time = 0, train = 0, test = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i, train += kMiB) {
      world.access(FileId{1},
                   {Access::Kind::kRead, train, kMiB, time += 4'000'000, 1ULL << 32, SessionId{1}});
    }
    for (int i = 0; i < 20; ++i, test += kMiB) {
      world.access(FileId{2},
                   {Access::Kind::kRead, test, kMiB, time += 4'000'000, 1ULL << 32, SessionId{1}});
    }
  }
  EXPECT_EQ(metric(world, SessionId{1}, SessionMetric::streams_begun), 2u);
  EXPECT_GE(world.cached(FileId{1}, {0, train}), train - 4 * kMiB);
  EXPECT_GE(world.cached(FileId{2}, {0, test}), test - 8 * kMiB);
}

TEST(Scheduler, SkippingReadersShareOneFrontierAndTheLink) {
  World world({0.0005, 400e6}, 512 * kMiB);
  constexpr uint64_t kRecord = 196 * kKiB;
  uint64_t times[4] = {};
  const uint64_t records = 512 * kMiB / kRecord;
  for (uint64_t record = 0; record < records; ++record) {
    uint64_t& time = times[record % 4];
    const uint64_t at = record * kRecord;
    time = world.demand(FileId{1}, {at, at + kRecord}, std::max(time, world.now()));
    world.access(FileId{1},
                 {Access::Kind::kRead, at, kRecord, time, (record % 4 + 1) << 32, SessionId{1}});
  }
  EXPECT_GE(512.0 * kMiB / (static_cast<double>(world.now()) / 1e9), 0.95 * 400e6);
  EXPECT_LE(metric(world, SessionId{1}, SessionMetric::streams_begun), 4u);
}

TEST(Scheduler, ABlockThatGrowsBeneathARunDoesNotStopIt) {
  World world;
  world.scheduler.file_usable(FileId{1}, false);  // still being opened
  world.access(FileId{1}, {Access::Kind::kTrip, 0, kCell, 1, 1ULL << 32, SessionId{1}});
  world.scheduler.queue().set(1, 1024 * kKiB, 16);
  world.scheduler.file_usable(FileId{1}, true);
  world.access(FileId{1}, {Access::Kind::kTrip, 4096, kCell - 4096, 2, 2ULL << 32, SessionId{1}});
  world.advance_to(1'000'000'000);
  EXPECT_GE(world.cached(FileId{1}, {0, kCell}), kCell - 4096);
}

TEST(Scheduler, WhatIsCachedIsFoundOutBySamplesWhereTheKernelDoesNotReport) {
  World world;
  world.reports_cache = false;
  world.cache[FileId{1}].add({0, 600 * kMiB});
  uint64_t again = 0;  // bytes read although they were cached
  world.on_read = [&](uint64_t, const PlannedRead& read) {
    if (read.range.end <= 600 * kMiB) again += read.range.length();
  };
  scan(world, 0, 600 * kMiB, 1000e6, Signs::kReads);
  EXPECT_LE(again, 80 * kMiB);
  EXPECT_GE(metric(world, SessionId{1}, SessionMetric::already_cached_bytes), 500 * kMiB);
  // And where it is no longer cached everything is read again.
  const uint64_t before = metric(world, SessionId{1}, SessionMetric::precached_bytes);
  const double seconds = scan(world, 600 * kMiB, 1024 * kMiB, 300e6, Signs::kReads);
  EXPECT_GE(metric(world, SessionId{1}, SessionMetric::precached_bytes) - before, 400 * kMiB);
  EXPECT_LE(seconds, 424.0 * kMiB / 300e6 * 1.02);
}

}  // namespace
}  // namespace sluice::test
