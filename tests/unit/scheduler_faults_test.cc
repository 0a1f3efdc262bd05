// The scheduler where reads fail, files shrink or end, memory is short and events make no sense.
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "tests/unit/scheduler_world.h"

namespace sluice::test {
namespace {

TEST(Scheduler, ErrorsAreCountedAndEndNothing) {
  World world;
  world.fail = [](const PlannedRead& read) {
    return read.range.begin >= 50 * kMiB && read.range.begin < 60 * kMiB ? EIO : 0;
  };
  scan(world, 0, 128 * kMiB, 300e6, Signs::kReads);
  EXPECT_GT(metric(world, SessionId{1}, SessionMetric::read_errors), 0u);
  EXPECT_GT(world.cached(FileId{1}, {64 * kMiB, 128 * kMiB}), 60 * kMiB);
}

TEST(Scheduler, PrefetchOffReadsNothingAndStillFollows) {
  World world;
  world.scheduler.add_session(SessionId{1}, {}, false, 0);
  scan(world, 0, 64 * kMiB, 300e6, Signs::kTrips);
  EXPECT_EQ(world.bytes_read, 0u);
  EXPECT_EQ(metric(world, SessionId{1}, SessionMetric::streams_begun), 1u);
  EXPECT_EQ(metric(world, SessionId{1}, SessionMetric::late_bytes), 0u);
}

TEST(Scheduler, FilesThatAreNotUsableAreNotRead) {
  World world;
  world.scheduler.file_usable(FileId{1}, false);
  scan(world, 0, 64 * kMiB, 300e6, Signs::kTrips);
  EXPECT_EQ(world.bytes_read, 0u);
}

// A job may cut its file between its report of it and our opening. The
// planner then looked for the next piece for ever.
TEST(Scheduler, AFileThatBecameShorterIsReadToItsEndAndNoFurther) {
  World world;
  for (const uint64_t size : {514 * kMiB, 513 * kMiB, 100 * kMiB, uint64_t{0}}) {
    world.scheduler.resize_file(FileId{1}, 1024 * kMiB);
    for (uint64_t at = 512 * kMiB; at < 514 * kMiB; at += kMiB) {
      world.scheduler.streams().on_access(
          FileId{1}, {Access::Kind::kRead, at, kMiB, world.now(), 1ULL << 32, SessionId{1}});
    }
    world.scheduler.resize_file(FileId{1}, size);
    std::vector<policy::PlannedRead> reads;
    world.scheduler.plan(world.now(), &reads);
    for (const policy::PlannedRead& read : reads) {
      EXPECT_LE(read.range.end, size);
      world.scheduler.on_done(read.token, 0, ECANCELED, world.now());
    }
  }
}

TEST(Scheduler, ReadsThatOutliveFileAndSessionEndQuietly) {
  World world;
  world.access(FileId{1}, {Access::Kind::kRead, 0, kMiB, 1, 1ULL << 32, SessionId{1}});
  world.access(FileId{1}, {Access::Kind::kRead, kMiB, kMiB, 2, 1ULL << 32, SessionId{1}});
  EXPECT_FALSE(world.scheduler.queue().tokens_of(FileId{1}).empty());
  world.scheduler.remove_file(FileId{1});
  world.scheduler.remove_session(SessionId{1}, 3);
  world.advance_to(1'000'000'000);
  EXPECT_EQ(world.scheduler.accounts().outstanding(), 0u);
  EXPECT_EQ(world.scheduler.queue().in_flight(1), 0u);
}

TEST(Scheduler, ReadsUnderWayForTooLongAreReported) {
  World world({100, 400e6});
  world.access(FileId{1}, {Access::Kind::kRead, 0, kMiB, 1, 1ULL << 32, SessionId{1}});
  EXPECT_TRUE(world.scheduler.queue().hung(1'000'000'000, 10'000'000'000).empty());
  EXPECT_EQ(world.scheduler.queue().hung(11'000'000'000, 10'000'000'000), std::vector<uint64_t>{1});
}

TEST(Scheduler, AbandonedReadAheadGivesWayWhenMemoryIsShort) {
  World world;
  world.scheduler.accounts().set_budget(32 * kMiB);
  scan(world, 0, 64 * kMiB, 300e6, Signs::kReads);
  world.advance_to(world.now() + 1'000'000'000);
  const uint64_t stuck = world.scheduler.accounts().outstanding();
  EXPECT_GT(stuck, 4 * kMiB);
  // Ten seconds later a job reads elsewhere: the rest of the first run must not starve it.
  world.advance_to(world.now() + 10'000'000'000);
  for (int i = 0; i < 6; ++i) {
    scan(world, (200 + 100ULL * static_cast<unsigned>(i)) * kMiB,
         (210 + 100ULL * static_cast<unsigned>(i)) * kMiB, 300e6, Signs::kReads);
    world.advance_to(world.now() + 6'000'000'000);
  }
  EXPECT_GT(metric(world, SessionId{1}, SessionMetric::precached_unused_bytes), 0u);
  EXPECT_LE(world.most_outstanding, 32 * kMiB);
}

// Whatever clients say, the books stay balanced.
TEST(Scheduler, AccountsBalanceForAnyInput) {
  for (unsigned seed = 1; seed <= 15; ++seed) {
    std::mt19937_64 random(seed);
    World world({0.0005, 400e6}, 512 * kMiB);
    world.add_file(FileId{2}, 100 * kMiB, 1);
    world.scheduler.add_session(SessionId{2}, {kMiB, 4 * kMiB, 50}, true, 16 * kMiB);
    world.scheduler.accounts().set_budget(48 * kMiB);
    uint64_t time = 1, at = 0;
    for (int i = 0; i < 2000; ++i) {
      time += random() % 3'000'000;
      const FileId file{static_cast<uint32_t>(1 + random() % 3)};  // 3 does not exist
      const SessionId session{static_cast<uint32_t>(1 + random() % 3)};
      if (random() % 4 == 0) at = random() % (600 * kMiB);
      const uint64_t length = 1 + random() % kMiB;
      switch (random() % 40) {
        case 0:
          world.scheduler.streams().on_random(file);
          break;
        case 1:
          world.scheduler.streams().on_unmapped(file, {at, at + 32 * kMiB});
          break;
        case 2:
          world.scheduler.streams().remove_process(static_cast<uint32_t>(random() % 5));
          break;
        case 3:
          world.scheduler.accounts().set_budget((1 + random() % 64) * kMiB);
          break;
        default:
          world.access(file, {static_cast<Access::Kind>(random() % 3), at, length, time,
                              random() % 5 << 32, session, random() % 2 != 0});
          at += length;
      }
    }
    world.advance_to(time + 10'000'000'000);
    ASSERT_EQ(world.scheduler.queue().in_flight(1), 0u);
    world.scheduler.remove_session(SessionId{1}, world.now());
    world.scheduler.remove_session(SessionId{2}, world.now());
    ASSERT_EQ(world.scheduler.accounts().outstanding(), 0u) << seed;
  }
}

}  // namespace
}  // namespace sluice::test
