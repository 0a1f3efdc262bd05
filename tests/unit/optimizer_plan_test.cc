// The pure parts of planning: interval sets, budget, storage model, one stream's plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <random>

#include "policy/planner/budget.h"
#include "policy/planner/stream_plan.h"
#include "policy/storage/storage_model.h"
#include "policy/util/interval_set.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

TEST(IntervalSet, AgreesWithABitmap) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    IntervalSet set;
    std::vector<bool> bits(400);
    for (int step = 0; step < 300; ++step) {
      const uint64_t a = random() % 400, b = a + random() % (401 - a);
      const auto before = static_cast<uint64_t>(std::count(
          bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), true));
      ASSERT_EQ(set.covered({a, b}), before);
      if (random() % 2 != 0) {
        ASSERT_EQ(set.add({a, b}), b - a - before);
        std::fill(bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), true);
      } else {
        std::vector<Range> removed;
        ASSERT_EQ(set.remove({a, b}, &removed), before);
        uint64_t sum = 0;
        for (const Range& piece : removed) sum += piece.length();
        ASSERT_EQ(sum, before);
        std::fill(bits.begin() + static_cast<long>(a), bits.begin() + static_cast<long>(b), false);
      }
      ASSERT_EQ(set.bytes(), static_cast<uint64_t>(std::count(bits.begin(), bits.end(), true)));
      uint64_t end = UINT64_MAX;  // pieces are disjoint, in order, and never touch
      for (const Range& piece : set.pieces()) {
        ASSERT_LT(piece.begin, piece.end);
        ASSERT_TRUE(end == UINT64_MAX || piece.begin > end);
        end = piece.end;
      }
      uint64_t gap = a;
      while (gap < 400 && bits[gap]) ++gap;
      ASSERT_EQ(set.first_gap(a), gap);
    }
  }
}

TEST(IntervalSet, EmptyRangesAndTheEndsOfTheNumbersDoNoHarm) {
  IntervalSet set;
  EXPECT_EQ(set.add({5, 5}), 0u);
  EXPECT_EQ(set.add({9, 5}), 0u);
  EXPECT_EQ(set.remove({0, UINT64_MAX}), 0u);
  EXPECT_EQ(set.add({UINT64_MAX - 10, UINT64_MAX}), 10u);
  EXPECT_EQ(set.remove({0, UINT64_MAX}), 10u);
  EXPECT_TRUE(set.empty());
}

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

// A link with latency and bandwidth, requests answered in order; holds `model` at its depth for a
// while.
struct Link {
  double latency_s, bandwidth;

  // Returns bytes per second over the last half.
  double run(StorageModel& model, double seconds, double reader_rate = 1e18,
             uint64_t begin_ns = 1'000'000'000) const {
    std::priority_queue<std::pair<uint64_t, uint64_t>, std::vector<std::pair<uint64_t, uint64_t>>,
                        std::greater<>>
        ends;  // time, index
    std::vector<StorageModel::Sample> samples;
    uint64_t now = begin_ns, free = now, half_bytes = 0, issued = 0;
    const uint64_t start = now, stop = now + static_cast<uint64_t>(seconds * 1e9);
    const auto transfer = static_cast<uint64_t>(model.block() / bandwidth * 1e9);
    while (now < stop) {
      const double wanted = reader_rate * static_cast<double>(now - start) / 1e9 + 4e6;
      while (ends.size() < model.depth(now) &&
             static_cast<double>(issued) * model.block() < wanted) {
        samples.push_back(model.on_issue(now, static_cast<unsigned>(ends.size())));
        free = std::max(free, now) + transfer;
        ends.push({free + static_cast<uint64_t>(latency_s * 1e9), samples.size() - 1});
        ++issued;
      }
      if (ends.empty()) {
        now += 100'000;
        continue;
      }
      const auto [at, index] = ends.top();
      ends.pop();
      now = std::max(now, at);
      model.on_done(samples[index], model.block(), now);
      if (now > start + (stop - start) / 2) half_bytes += model.block();
    }
    return static_cast<double>(half_bytes) / (seconds / 2);
  }
};

TEST(StorageModel, FillsLinksOfVeryDifferentLatency) {
  for (const Link link : {Link{0.0005, 400e6}, Link{0.003, 400e6}, Link{0.010, 200e6},
                          Link{0.00007, 1800e6}, Link{0.02, 100e6}}) {
    StorageModel model(128 * kKiB, 48);
    EXPECT_GE(link.run(model, 2), 0.97 * std::min(link.bandwidth, 48 * 131072 / link.latency_s));
    EXPECT_NEAR(model.bandwidth(), link.bandwidth, 0.1 * link.bandwidth);
    EXPECT_FALSE(model.starting());
  }
}

TEST(StorageModel, APageThatIsReadForItselfTakesALatency) {
  StorageModel unknown(128 * kKiB, 48);
  EXPECT_EQ(unknown.page_demand(kMiB).alone_ns, 0);
  for (const Link link : {Link{0.003, 400e6}, Link{0.010, 200e6}, Link{0.02, 100e6}}) {
    StorageModel model(128 * kKiB, 48);
    link.run(model, 2);
    const double page = link.latency_s * 1e9;
    EXPECT_NEAR(model.page_demand(1).alone_ns, page, 0.2 * page);
    EXPECT_NEAR(model.page_demand(60'000).alone_ns, 15 * page, 0.2 * 15 * page);
    EXPECT_EQ(model.page_demand(kMiB).link_ns, model.demand(kMiB).link_ns);
  }
}

// On a full link a read waits for those before it: that is none of its own time.
TEST(StorageModel, WhatALoneReadTakesIsKnownOfAFullLink) {
  for (const Link link : {Link{0.0005, 400e6}, Link{0.003, 400e6}, Link{0.01, 100e6}}) {
    StorageModel model(128 * kKiB, 48);
    link.run(model, 2, 0.9 * link.bandwidth);
    const double alone = (link.latency_s + 131072 / link.bandwidth) * 1e9;
    EXPECT_NEAR(model.usual_ns(), alone, 0.2 * alone);
  }
}

// Of storage that answers many at a time as fast as one, others show nothing.
TEST(StorageModel, WhatALoneReadTakesIsWhatAllTakeWhereNoneWaits) {
  StorageModel model(128 * kKiB, 48);
  std::mt19937 draw(1);
  uint64_t now = 1'000'000'000;
  for (int i = 0; i < 500; ++i) {
    const auto sample = model.on_issue(now, 5 + draw() % 3);
    model.on_done(sample, 128 * kKiB, now + 9'000'000 + draw() % 2'000'000, true);
    now += 20'000'000;
  }
  EXPECT_NEAR(model.usual_ns(), 9.9e6, 0.9e6);
}

TEST(StorageModel, KeepsNoMoreInFlightThanTheLinkAndAReserveNeed) {
  StorageModel model(128 * kKiB, 48);
  Link{0.0005, 400e6}.run(model, 3);
  const double pipe = 400e6 * (0.0005 + 131072 / 400e6) / 131072;
  EXPECT_LE(model.depth(10'000'000'000),
            static_cast<unsigned>(2 * pipe + 400e6 * 0.003 / 131072 + 4));
}

TEST(StorageModel, ASlowReaderDoesNotMakeTheLinkLookSlow) {
  StorageModel model(128 * kKiB, 48);
  const Link link{0.0005, 400e6};
  link.run(model, 2);
  const unsigned before = model.depth(20'000'000'000);
  link.run(model, 8, 50e6);
  EXPECT_GE(model.depth(20'000'000'000), before / 2);
}

TEST(StorageModel, MakesRoomWhileTheReaderStalls) {
  StorageModel model(128 * kKiB, 48);
  Link{0.003, 400e6}.run(model, 1);
  const unsigned before = model.depth(3'000'000'000);
  model.on_stall(3'000'000'000);
  EXPECT_LE(model.depth(3'000'000'001), before / 2 + 1);
  EXPECT_EQ(model.depth(3'100'000'000), before);
}

// Another host uses the link too: half of it is left, and requests wait twice as long. More of
// them would only wait longer.
TEST(StorageModel, LatencyThatRisesWithoutMoreBandwidthIsNoReasonForDepth) {
  StorageModel model(128 * kKiB, 96);
  Link{0.001, 400e6}.run(model, 3);
  const unsigned alone = model.depth(4'000'000'000);
  Link{0.002, 200e6}.run(model, 5, 1e18, 4'000'000'000);
  EXPECT_LE(model.depth(9'000'000'000), alone);
  EXPECT_LT(model.depth(9'000'000'000), 96U);
}

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
  shares.look(facts, 0, 0);
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
    shares.look(facts, 0, 0);
    EXPECT_LT(shares.stage(0, 0), before);
    EXPECT_LT(shares.stage(0, 5000 * kMiB), 5000 * kMiB);
    EXPECT_EQ(shares.cache(0), budget) << "the kernel takes that back by itself";
    before = shares.stage(0, 0);
  }
  facts.pressure = 0;
  shares.look(facts, 0, 0);
  EXPECT_GT(shares.stage(0, 0), before);
  EXPECT_LT(shares.stage(0, 0), budget) << "not at once";
}

}  // namespace
}  // namespace sluice::optimizer
