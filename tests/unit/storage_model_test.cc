// A storage's latency, bandwidth and depth, as they follow from its requests.
#include "policy/storage/storage_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <random>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

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

// The link was taken to be busy with packages until the optimizer ended, long after the last one.
TEST(StorageModel, WhatBusiedTheLinkIsNotCountedOnForEver) {
  StorageModel model(128 * kKiB, 128);
  Link{0.002, 200e6}.run(model, 2);
  const uint64_t now = 3'000'000'000;
  const unsigned usual = model.depth(now);
  model.set_busy(20'000'000, now);
  EXPECT_GE(model.depth(now), usual + static_cast<unsigned>(0.018 * 200e6 / (128 * kKiB)));
  EXPECT_EQ(model.depth(now + StorageModel::kBusyForNs), usual);
}

// Four blocks that came together in one latency counted as four of a quarter, and the depth sank.
TEST(StorageModel, ALongReadsBlocksTakeALatencyNotAShareOfIt) {
  StorageModel model(128 * kKiB, 48);
  const Link link{0.010, 200e6};
  link.run(model, 2);
  const uint64_t latency = model.latency_ns();
  const unsigned depth = model.depth(4'000'000'000);
  const auto transfer = static_cast<uint64_t>(4 * 128 * kKiB / link.bandwidth * 1e9);
  uint64_t now = 4'000'000'000;
  for (int i = 0; i < 100; ++i) {
    const auto sample = model.on_issue(now, 0);
    now += 10'000'000 + transfer;
    model.on_done(sample, 4 * 128 * kKiB, now);
  }
  EXPECT_GE(model.latency_ns(), latency * 9 / 10);
  EXPECT_GE(model.depth(now), depth * 9 / 10);
}

// A reader's own request brings what is being prefetched: that read ends at once.
TEST(StorageModel, AReadThatFindsItsPagesCachedShowsNoLatency) {
  StorageModel model(128 * kKiB, 48);
  const Link link{0.010, 200e6};
  link.run(model, 2);
  const uint64_t latency = model.latency_ns();
  const auto sample = model.on_issue(4'000'000'000, 0);
  model.on_done(sample, 128 * kKiB, 4'000'300'000);
  EXPECT_EQ(model.latency_ns(), latency);
}

TEST(StorageModel, LearnsThatTheStorageHasBecomeFaster) {
  StorageModel model(128 * kKiB, 48);
  Link{0.010, 200e6}.run(model, 2);
  for (uint64_t now = 4'000'000'000; now < 6'000'000'000; now += 1'000'000) {
    model.on_done(model.on_issue(now, 0), 128 * kKiB, now + 500'000);
  }
  EXPECT_LE(model.latency_ns(), 500'000);
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

// A few reads that were late for other reasons must not make each request cost more than any took.
TEST(StorageModel, ALoneReadTakesNoLongerThanOneAmongOthers) {
  StorageModel model(128 * kKiB, 48);
  uint64_t now = 1'000'000'000;
  const auto read = [&](unsigned others, uint64_t took_ns) {
    const auto sample = model.on_issue(now, others);
    model.on_done(sample, 128 * kKiB, now + took_ns, true);
    now += 20'000'000;
  };
  for (int i = 0; i < 8; ++i) read(0, 30'000'000);
  for (int i = 0; i < 40; ++i) read(3 + i % 5, 10'000'000);
  EXPECT_NEAR(model.usual_ns(), 10e6, 0.5e6);
}

// Bursts, each of whose reads waits for those before it: a job that reads one block at a time would
// have waited for none. `make demo` claimed three times what it had saved.
TEST(StorageModel, ALoneReadTakesLittleLongerThanTheShortestSeen) {
  StorageModel model(128 * kKiB, 48);
  uint64_t now = 1'000'000'000;
  for (int burst = 0; burst < 50; ++burst) {
    const bool alone = burst % 10 == 0;
    const auto sample = model.on_issue(now, 0);
    model.on_done(sample, 128 * kKiB, now + (alone ? 10'000'000 : 40'000'000), true);
    now += 100'000'000;
  }
  EXPECT_LE(model.usual_ns(), 1.25 * 10e6);
  EXPECT_GE(model.usual_ns(), 10e6);
}

// Records of less than a block, the first of them late: 13.7 s were claimed of a job of 9.4 s.
TEST(StorageModel, AShortReadTakesLittleLongerThanTheShortestSeen) {
  StorageModel model(128 * kKiB, 48);
  uint64_t now = 1'000'000'000;
  const auto read = [&](unsigned others, uint64_t took_ns) {
    model.on_done(model.on_issue(now, others), 61'440, now + took_ns, true);
    now += 100'000'000;
  };
  for (unsigned others = 0; others < 8; ++others) read(others, 40'000'000);
  for (unsigned i = 0; i < 24; ++i) read(i % 8, 10'000'000);
  EXPECT_LE(model.usual_ns(), 1.25 * 10e6);
  EXPECT_GE(model.usual_ns(), 10e6);
  EXPECT_GE(model.page_demand(61'440).alone_ns, 0.25 * 15 * 10e6);
}

// The first read found its pages cached: that is what none of the others takes.
TEST(StorageModel, AShortReadThatFindsItsPagesCachedBoundsNoOther) {
  StorageModel model(128 * kKiB, 48);
  uint64_t now = 1'000'000'000;
  const auto read = [&](uint64_t took_ns) {
    model.on_done(model.on_issue(now, 0), 61'440, now + took_ns, true);
    now += 100'000'000;
  };
  read(20'000);
  for (int i = 0; i < 400; ++i) read(10'000'000);
  EXPECT_GE(model.usual_ns(), 5e6);
}

TEST(StorageModel, HasNoMoreInFlightThanTheLinkAndAReserveNeed) {
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

}  // namespace
}  // namespace sluice::policy
