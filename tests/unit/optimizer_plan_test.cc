// How far a stream is read ahead: fixed sizes and the automatic plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/planner/stream_plan.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

Stream stream_at(uint64_t position, uint64_t opened, uint64_t events, bool exact) {
  Stream stream;
  stream.position = position;
  stream.opened = opened;
  stream.events = events;
  stream.confirmed = events > 1;
  stream.exact = exact;
  return stream;
}

const PlanInput kInput{4096 * kMiB, 128 * kKiB, 400e6, 1024 * kMiB, 1};

TEST(FixedPlan, ReadsSizeOnTheFirstEventAndTheNextFromItsEndPastTheThreshold) {
  StreamPlan plan({8 * kMiB, 50 * kMiB, 75});
  plan.on_reader(stream_at(0, 8 * kMiB, 1, false), kInput);
  EXPECT_EQ(plan.frontier(), 0u);
  EXPECT_EQ(plan.target(), 50 * kMiB);
  plan.advance(50 * kMiB);
  plan.on_reader(stream_at(32 * kMiB, 40 * kMiB, 5, false), kInput);
  EXPECT_EQ(plan.target(), 50 * kMiB);  // 64 %
  plan.on_reader(stream_at(40 * kMiB, 48 * kMiB, 6, false), kInput);
  EXPECT_EQ(plan.target(), 100 * kMiB);  // 80 %: the next size from the end of the last
  plan.on_reader(stream_at(48 * kMiB, 56 * kMiB, 7, false), kInput);
  EXPECT_EQ(plan.target(), 100 * kMiB);
}

TEST(FixedPlan, AnyFirstCheckpointTriggersAndAnOvertakenPlanStartsOver) {
  StreamPlan plan({8 * kMiB, 50 * kMiB, 75});
  plan.on_reader(stream_at(123 * kMiB, 128 * kMiB, 1, false), kInput);
  EXPECT_EQ(plan.frontier(), 123 * kMiB);
  EXPECT_EQ(plan.target(), 173 * kMiB);
  plan.on_reader(stream_at(300 * kMiB, 304 * kMiB, 2, false), kInput);
  EXPECT_EQ(plan.frontier(), 300 * kMiB);
  EXPECT_EQ(plan.target(), 350 * kMiB);
}

TEST(FixedPlan, AThresholdThatCouldBeSteppedOverIsLowered) {
  bool never = true;
  EXPECT_EQ(effective_threshold({8 * kMiB, 50 * kMiB, 75}, &never), 75 * 50 * kMiB / 100);
  EXPECT_FALSE(never);
  EXPECT_EQ(effective_threshold({20 * kMiB, 50 * kMiB, 75}, &never), 30 * kMiB);
  EXPECT_FALSE(never);
  effective_threshold({50 * kMiB, 50 * kMiB, 75}, &never);
  EXPECT_TRUE(never);
  effective_threshold({UINT64_MAX, UINT64_MAX, 100}, &never);
  EXPECT_TRUE(never);
}

// A reader that passes every checkpoint is never without a running pre-cache: the claim behind
// the threshold rule, for any distance and size.
TEST(FixedPlan, WithADistanceBelowTheSizeATriggerIsCertain) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const uint64_t size = (1 + random() % 64) * kMiB;
    const uint64_t distance = 64 * kKiB * (1 + random() % (size / (64 * kKiB)));
    if (distance >= size) continue;
    StreamPlan plan({distance, size, 1 + static_cast<uint32_t>(random() % 100)});
    uint64_t events = 0;
    for (uint64_t at = random() % distance; at < 1024 * kMiB;
         at = at / distance * distance + distance) {
      plan.on_reader(stream_at(at, at + distance, ++events, false), kInput);
      ASSERT_EQ(plan.jumped(), 0u) << "distance " << distance << " size " << size;
      ASSERT_GE(plan.target(), std::min(at + distance, kInput.file_size) / 4096 * 4096);
      plan.advance(plan.target());
    }
  }
}

TEST(AutomaticPlan, BeginsSmallGrowsByWhatArrivesAndIsBounded) {
  StreamPlan plan({});
  Stream stream = stream_at(0, 8 * kMiB, 1, false);
  plan.on_reader(stream, kInput);
  EXPECT_GE(plan.target(), 2 * kInput.block);
  EXPECT_LE(plan.target(), kMiB);
  for (int i = 0; i < 1000; ++i) {
    plan.advance(plan.target());
    plan.on_filled(stream, kMiB, kInput);
  }
  EXPECT_LE(plan.target(), 8 * kMiB + 4 * kMiB);  // the cell and a little: one event proves little
  EXPECT_GE(plan.target(), 8 * kMiB);
  stream = stream_at(8 * kMiB, 16 * kMiB, 2, false);
  plan.on_reader(stream, kInput);
  for (int i = 0; i < 1000; ++i) plan.on_filled(stream, kMiB, kInput);
  EXPECT_GE(plan.target(), 16 * kMiB + 100 * kMiB);  // 0.3 s of the storage
  EXPECT_LE(plan.target(), 16 * kMiB + 256 * kMiB);
}

TEST(AutomaticPlan, NotFarAheadOfASlowReader) {
  for (const double rate : {1e5, 1e6, 4e6}) {
    StreamPlan plan({});
    for (uint64_t cell = 0; cell < 8; ++cell) {
      Stream stream = stream_at(cell * 8 * kMiB, (cell + 1) * 8 * kMiB, cell + 1, false);
      stream.rate = cell > 0 ? rate : 0;
      plan.on_reader(stream, kInput);
      for (int i = 0; i < 1000; ++i) plan.on_filled(stream, kMiB, kInput);
      EXPECT_GE(plan.target(), stream.opened);
      const uint64_t seconds = 2 * static_cast<uint64_t>(rate);
      EXPECT_LE(plan.target(), stream.opened + std::max({4 * kMiB, seconds, 8 * kInput.block}));
    }
  }
}

TEST(AutomaticPlan, OneExactEventIsFollowedByLittle) {
  StreamPlan plan({});
  const Stream stream = stream_at(kMiB, kMiB, 1, true);
  plan.on_reader(stream, kInput);
  for (int i = 0; i < 1000; ++i) plan.on_filled(stream, kMiB, kInput);
  EXPECT_LE(plan.target(), kMiB + 512 * kKiB);
}

// The range of a call that has begun is certain, however little is known of the stream; what
// follows it is not.
TEST(AutomaticPlan, ACallThatBeganIsReadToItsEndAtOnce) {
  for (const uint64_t events : {1, 5}) {
    StreamPlan plan({});
    const Stream stream = stream_at(kMiB, 91 * kMiB, events, true);
    plan.on_reader(stream, kInput);
    EXPECT_GE(plan.target(), 91 * kMiB) << events << " events";
    for (int i = 0; i < 1000; ++i) plan.on_filled(stream, kMiB, kInput);
    EXPECT_LE(plan.target(), 91 * kMiB + (events == 1 ? 512 * kKiB : 16 * kMiB));
  }
}

TEST(AutomaticPlan, StaysWithinItsShareOfTheBudgetAndTheFile) {
  for (const uint64_t budget : {4 * kMiB, 64 * kMiB, 1024 * kMiB}) {
    for (const uint32_t streams : {1U, 3U, 30U}) {
      PlanInput input = kInput;
      input.budget = budget;
      input.streams = streams;
      StreamPlan plan({});
      Stream stream = stream_at(100 * kMiB, 100 * kMiB, 5, true);
      plan.on_reader(stream, input);
      for (int i = 0; i < 1000; ++i) plan.on_filled(stream, kMiB, input);
      EXPECT_LE(plan.target() - 100 * kMiB,
                std::max(budget / std::max(4U, streams + 1), 8 * input.block));
    }
  }
  PlanInput small = kInput;
  small.file_size = 10 * kMiB + 17;
  StreamPlan plan({});
  const Stream stream = stream_at(9 * kMiB, 9 * kMiB, 5, true);
  plan.on_reader(stream, small);
  for (int i = 0; i < 100; ++i) plan.on_filled(stream, kMiB, small);
  EXPECT_EQ(plan.target(), small.file_size);
}

TEST(AutomaticPlan, NeverAimsBehindTheReader) {
  StreamPlan plan({});
  plan.on_reader(stream_at(0, 0, 1, true), kInput);
  plan.on_reader(stream_at(100 * kMiB, 100 * kMiB, 2, true), kInput);
  EXPECT_GE(plan.frontier(), 100 * kMiB);
  EXPECT_EQ(plan.jumped(), 100 * kMiB);
}

TEST(AutomaticPlan, APausedPlanWantsNothingUntilItsReaderIsBack) {
  StreamPlan plan({});
  plan.on_reader(stream_at(0, 8 * kMiB, 1, false), kInput);
  plan.pause();
  EXPECT_EQ(plan.target(), plan.frontier());
  plan.on_reader(stream_at(8 * kMiB, 16 * kMiB, 2, false), kInput);
  EXPECT_GT(plan.target(), plan.frontier());
}

}  // namespace
}  // namespace sluice::policy
