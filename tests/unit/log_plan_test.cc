// LCache's two logs against a model that counts blocks one by one.
#include "policy/chunks/log_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace sluice::policy {
namespace {

constexpr uint64_t kBlock = LogIndex::kBlock;

std::vector<SampleId> shuffled(uint32_t samples, uint32_t seed) {
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

// About that many of sizes()' samples.
constexpr uint64_t chunk_of(uint64_t samples, uint32_t most) { return samples * most / 2; }

std::vector<uint32_t> sizes(uint32_t samples, uint32_t most, uint32_t seed) {
  std::mt19937 draw(seed);
  std::vector<uint32_t> bytes(samples);
  for (uint32_t& one : bytes) one = draw() % (most + 1);
  return bytes;
}

// The blocks of all written samples of both logs.
uint64_t blocks_in_use(const LogPlan& plan) {
  uint64_t count = 0;
  for (const uint32_t which : {0U, 1U}) {
    const LogIndex& log = plan.log(which);
    std::set<uint64_t> blocks;
    for (uint32_t chunk = 0; chunk < log.chunks(); ++chunk) {
      for (const SampleId sample : log.members(chunk)) {
        if (!log.is_written(sample)) continue;
        const LogRange place = *log.place(sample);
        for (uint64_t at = place.offset / kBlock; at * kBlock < place.offset + place.length; ++at) {
          if (place.length != 0) blocks.insert(at);
        }
      }
    }
    count += blocks.size();
  }
  return count * kBlock;
}

// Sizes that become known as their samples are read.
struct Unknown {
  const std::vector<uint32_t> real;
  std::vector<uint32_t> known = std::vector<uint32_t>(real.size());

  void learn(std::span<const SampleId> samples) {
    for (const SampleId sample : samples) known[sample] = real[sample];
  }
};

// Runs an epoch, and checks each batch.
struct Epoch {
  uint64_t remote = 0, cached = 0, requests = 0;

  Epoch(LogPlan* plan, const std::vector<SampleId>& order, uint32_t batch, uint64_t budget,
        Unknown* sizes = nullptr) {
    for (size_t at = 0; at < order.size(); at += batch) {
      const std::span<const SampleId> now =
          std::span(order).subspan(at, std::min<size_t>(batch, order.size() - at));
      check_reads(*plan, now);
      if (sizes != nullptr) sizes->learn(now);
      check_moves(plan, now);
      EXPECT_LE(plan->used(), budget);
      EXPECT_EQ(plan->used(), blocks_in_use(*plan));
    }
  }

  void check_reads(const LogPlan& plan, std::span<const SampleId> batch) {
    const LogPlan::Reads reads = plan.reads(batch);
    remote += reads.remote.size();
    requests += reads.ranges.size();
    for (const SampleId sample : batch) {
      const bool far = std::ranges::count(reads.remote, sample) != 0;
      EXPECT_EQ(far, !plan.is_cached(sample));
      if (far) continue;
      ++cached;
      const LogRange place = *plan.log(plan.current()).place(sample);
      EXPECT_TRUE(std::ranges::any_of(reads.ranges, [&](const LogRange& range) {
        return range.offset <= place.offset &&
               place.offset + place.length <= range.offset + range.length;
      }));
    }
    for (const LogRange& range : reads.ranges) {
      EXPECT_EQ(range.offset % kBlock, 0U);
      EXPECT_EQ(range.length % kBlock, 0U);
    }
  }

  static void check_moves(LogPlan* plan, std::span<const SampleId> batch) {
    const LogPlan::Moves moves = plan->consumed(batch);
    const LogIndex& current = plan->log(plan->current());
    const LogIndex& target = moves.to_current ? current : plan->log(plan->current() ^ 1);
    EXPECT_TRUE(std::ranges::is_sorted(moves.writes, {}, &LogPlan::Write::offset));
    for (const LogPlan::Write& write : moves.writes) {
      EXPECT_EQ(target.place(write.sample)->offset, write.offset);
      EXPECT_TRUE(target.is_written(write.sample));
    }
    // What is released holds nothing that is still to be read.
    for (uint32_t chunk = 0; chunk < current.chunks(); ++chunk) {
      for (const SampleId sample : current.members(chunk)) {
        if (!current.is_written(sample)) continue;
        const LogRange place = *current.place(sample);
        if (place.length == 0) continue;
        for (const LogRange& range : moves.release) {
          EXPECT_TRUE(place.offset + place.length <= range.offset ||
                      range.offset + range.length <= place.offset);
        }
      }
    }
  }
};

TEST(LogPlan, AfterTheFirstEpochAllOfADatasetThatFitsIsReadChunkByChunk) {
  const auto bytes = sizes(300, 30'000, 1);
  LogPlan plan(bytes, chunk_of(16, 30'000), 20 << 20);
  std::vector<SampleId> order = shuffled(300, 1);
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    const std::vector<SampleId> next = shuffled(300, epoch + 2);
    EXPECT_EQ(plan.begin_epoch(next), epoch > 0);
    const Epoch result(&plan, order, 16, 20 << 20);
    EXPECT_EQ(result.remote, epoch == 0 ? 300U : 0U);
    EXPECT_EQ(result.requests, epoch == 0 ? 0U : (300U + 15) / 16);
    order = next;
  }
}

// Both logs within one budget: a log has all of it, where two halves would each have a half.
TEST(LogPlan, ALogHasTheWholeBudgetWhereTheDatasetIsLarger) {
  const auto bytes = sizes(2000, 20'000, 2);
  const uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  const uint64_t budget = all * 48 / 100;
  LogPlan plan(bytes, chunk_of(32, 20'000), budget);
  std::vector<SampleId> order = shuffled(2000, 1);
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<SampleId> next = shuffled(2000, epoch + 2);
    plan.begin_epoch(next);
    const Epoch result(&plan, order, 32, budget);
    if (epoch > 0) {
      EXPECT_GE(result.cached, 2000U * 46 / 100);
    }
    order = next;
  }
}

TEST(LogPlan, AnOrderThatWasNotExpectedIsReadFromWhereItLies) {
  const auto bytes = sizes(500, 50'000, 3);
  LogPlan plan(bytes, chunk_of(16, 50'000), 64 << 20);
  plan.begin_epoch(shuffled(500, 2));
  Epoch(&plan, shuffled(500, 1), 16, 64 << 20);
  const std::vector<SampleId> other = shuffled(500, 9);
  plan.begin_epoch(shuffled(500, 10));
  EXPECT_EQ(Epoch(&plan, other, 16, 64 << 20).remote, 0U);
  plan.begin_epoch({});
  EXPECT_EQ(Epoch(&plan, shuffled(500, 10), 16, 64 << 20).remote, 0U);
}

TEST(LogPlan, WithoutANextOrderTheLogStaysAsItLiesAndIsFilled) {
  const auto bytes = sizes(400, 20'000, 4);
  LogPlan plan(bytes, chunk_of(16, 20'000), 64 << 20);
  EXPECT_FALSE(plan.begin_epoch({}));
  EXPECT_EQ(Epoch(&plan, shuffled(400, 1), 16, 64 << 20).remote, 400U);
  EXPECT_FALSE(plan.begin_epoch({}));
  const Epoch second(&plan, shuffled(400, 2), 16, 64 << 20);
  EXPECT_EQ(second.remote, 0U);
  EXPECT_GT(second.requests, 25U) << "it is read scattered";
}

// A job's first two epochs: its first order's successor is not known, or only after a while.
TEST(LogPlan, AnOrderThatBecomesKnownLateIsWrittenFromThenOn) {
  const auto bytes = sizes(400, 20'000, 6);
  LogPlan plan(bytes, chunk_of(16, 20'000), 64 << 20);
  const std::vector<SampleId> first = shuffled(400, 1), second = shuffled(400, 2);
  EXPECT_FALSE(plan.begin_epoch({}));
  Epoch(&plan, {first.begin(), first.begin() + 200}, 16, 64 << 20);
  plan.expect(second);
  plan.expect(first);  // no effect
  Epoch(&plan, {first.begin() + 200, first.end()}, 16, 64 << 20);
  EXPECT_TRUE(plan.begin_epoch({}));
  EXPECT_EQ(Epoch(&plan, second, 16, 64 << 20).remote, 200U);
}

TEST(LogPlan, WhatLeavesMemoryUnreadIsReadFromTheLogOfThisEpoch) {
  const auto bytes = sizes(100, 9'000, 7);
  LogPlan plan(bytes, chunk_of(16, 9'000), 64 << 20);
  const std::vector<SampleId> order = shuffled(100, 1);
  plan.begin_epoch(shuffled(100, 2));
  const LogPlan::Moves moves = plan.returned(order);
  EXPECT_TRUE(moves.to_current);
  EXPECT_EQ(moves.writes.size(), 100U);
  EXPECT_TRUE(plan.returned(order).writes.empty()) << "they are there";
  EXPECT_EQ(plan.used(), blocks_in_use(plan));
  EXPECT_EQ(Epoch(&plan, order, 8, 64 << 20).remote, 0U);
  EXPECT_TRUE(plan.begin_epoch({}));
  EXPECT_EQ(Epoch(&plan, shuffled(100, 2), 8, 64 << 20).remote, 0U);
}

TEST(LogPlan, WhatWasDroppedIsReadFromItsOrigin) {
  const auto bytes = sizes(100, 9'000, 5);
  LogPlan plan(bytes, chunk_of(16, 9'000), 64 << 20);
  plan.begin_epoch(shuffled(100, 2));
  Epoch(&plan, shuffled(100, 1), 8, 64 << 20);
  plan.drop(7);
  plan.drop(8);
  EXPECT_EQ(plan.used(), blocks_in_use(plan));
  plan.begin_epoch(shuffled(100, 3));
  EXPECT_EQ(Epoch(&plan, shuffled(100, 2), 8, 64 << 20).remote, 2U);
}

// What an epoch read is not read one sample at a time in the next one, although the sizes of most
// were not known when the next one's order was: a job's first epoch.
TEST(LogPlan, SamplesWhoseSizesWereNotKnownAreReadChunkByChunk) {
  Unknown bytes{sizes(300, 30'000, 8)};
  LogPlan plan(bytes.known, chunk_of(16, 30'000), 64 << 20);
  std::vector<SampleId> order = shuffled(300, 1);
  plan.begin_epoch(shuffled(300, 2));
  EXPECT_FALSE(plan.is_ahead()) << "how large a chunk is to be is not known";
  Epoch(&plan, {order.begin(), order.begin() + 20}, 16, 64 << 20, &bytes);
  plan.expect(shuffled(300, 2));
  EXPECT_TRUE(plan.is_ahead());
  plan.consumed({order.begin(), order.begin() + 20});
  Epoch(&plan, {order.begin() + 20, order.end()}, 16, 64 << 20, &bytes);
  EXPECT_TRUE(plan.begin_epoch(shuffled(300, 3)));
  const Epoch second(&plan, shuffled(300, 2), 16, 64 << 20, &bytes);
  EXPECT_EQ(second.remote, 0U);
  EXPECT_LE(second.requests, 2 * 19U) << "a batch may have a part in two chunks";
}

void expect_apart(const LogIndex& log) {
  std::vector<LogRange> places;
  for (uint32_t chunk = 0; chunk < log.chunks(); ++chunk) {
    for (const SampleId sample : log.members(chunk)) {
      EXPECT_EQ(log.chunk_of(sample), chunk);
      if (const auto place = log.place(sample)) places.push_back(*place);
    }
  }
  std::ranges::sort(places, {}, &LogRange::offset);
  for (size_t at = 1; at < places.size(); ++at) {
    EXPECT_GE(places[at].offset, places[at - 1].offset + places[at - 1].length);
  }
}

// A chunk keeps to its room, whatever comes: what has none is read alone.
TEST(LogPlan, SamplesFarLargerThanExpectedLieBehindAllOthers) {
  Unknown bytes{std::vector<uint32_t>(400, 50'000)};
  std::vector<SampleId> order(400);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t sample = 0; sample < 10; ++sample) bytes.known[sample] = 1'000;
  LogPlan plan(bytes.known, 64'000, 64 << 20);
  plan.begin_epoch(order);
  std::fill_n(bytes.known.begin() + 10, 390, 50'000);
  EXPECT_EQ(plan.consumed(order).writes.size(), 400U);
  EXPECT_EQ(plan.used(), blocks_in_use(plan));
  const LogIndex& log = plan.log(1 - plan.current());
  EXPECT_EQ(log.samples(), 400U);
  EXPECT_EQ(log.chunk_of(9), 0U);
  EXPECT_EQ(log.chunk_of(12), 0U) << "10 KB and three of 50 are within three times 64";
  EXPECT_GE(log.chunk_of(13), 400U / 64 + 1);
  expect_apart(log);
  EXPECT_TRUE(plan.begin_epoch({}));
  EXPECT_EQ(Epoch(&plan, order, 16, 64 << 20).remote, 0U);
}

// Offsets in a chunk wrapped around at four gigabytes, onto those of other samples.
TEST(LogIndex, AChunkIsNotLargerThanItsOffsets) {
  const std::vector<uint32_t> bytes(200, 64 << 20);
  std::vector<SampleId> order(150);
  std::iota(order.begin(), order.end(), 0);
  LogIndex log(order, bytes, {.chunk_samples = 200});
  for (const SampleId sample : order) log.put(sample);
  for (SampleId sample = 150; sample < 200; ++sample) log.append(sample);
  EXPECT_EQ(log.place(62)->offset, uint64_t{62} * (64 << 20));
  EXPECT_EQ(log.chunk_of(62), 0U);
  EXPECT_EQ(log.chunk_of(63), 1U);
  EXPECT_EQ(log.samples(), 200U);
  expect_apart(log);
}

// What is of unknown size does not keep out what has room, and what was left out is not in the way
// of what the epoch reads in order.
TEST(LogPlan, WhatMayHaveRoomIsLaidOut) {
  Unknown bytes{std::vector<uint32_t>(1000, 9'000)};
  std::vector<SampleId> order(1000);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t sample = 0; sample < 100; ++sample) bytes.known[sample] = 10'000;
  LogPlan plan(bytes.known, 200'000, 9'500'000);  // for all, but not by what is known
  plan.begin_epoch(order);
  EXPECT_EQ(plan.log(1 - plan.current()).samples(), 1000U);
  LogPlan half(bytes.known, 200'000, 4'500'000);
  half.begin_epoch(order);
  EXPECT_LT(half.log(1 - half.current()).samples(), 700U);
  bytes.learn(order);
  half.begin_epoch({});  // the log stays
  const uint32_t laid_out = half.log(half.current()).samples();
  const SampleId last = 999;
  EXPECT_EQ(half.consumed({&last, 1}).writes.size(), 1U);
  EXPECT_EQ(half.log(half.current()).samples(), laid_out + 1);
  EXPECT_GT(half.log(half.current()).chunk_of(last),
            half.log(half.current()).chunk_of(laid_out - 1));
}

// The size of the first file decided, and chunks of 5 KB files had been hundreds of megabytes.
TEST(LogPlan, ChunksAreAsLargeAsWasAskedWhateverTheFirstSampleHas) {
  std::vector<uint32_t> bytes(2000, 100'000);
  bytes[0] = 500;
  LogPlan plan(bytes, 4 << 20, uint64_t{1} << 30);
  plan.begin_epoch(shuffled(2000, 1));
  EXPECT_EQ(plan.log(1 - plan.current()).members(0).size(), (4U << 20) / 100'000);
}

// Random orders with and without repetition, guesses right and wrong, budgets of all sizes, samples
// of less than a block and of many, sizes that are known and not.
TEST(LogPlan, NeverExceedsItsBudgetNorReleasesWhatIsStillToBeRead) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 draw(seed);
    const uint32_t samples = 1 + draw() % 200;
    Unknown bytes{sizes(samples, draw() % 2 != 0 ? 3'000 : 40'000, seed)};
    if (draw() % 2 != 0) bytes.known = bytes.real;
    const std::vector<SampleId> some = shuffled(samples, draw());
    bytes.learn({some.data(), draw() % (samples + 1)});
    const uint64_t budget = draw() % (3 << 20);
    LogPlan plan(bytes.known, 1 + draw() % (1 << 20), budget);
    std::vector<SampleId> order = shuffled(samples, draw());
    for (int epoch = 0; epoch < 4; ++epoch) {
      std::vector<SampleId> next = shuffled(samples, draw());
      if (draw() % 4 == 0) next[draw() % samples] = next[0];  // with replacement
      plan.begin_epoch(draw() % 4 == 0 ? std::vector<SampleId>() : next);
      const size_t stops = draw() % 3 == 0 ? draw() % samples : samples;
      Epoch(&plan, {order.begin(), order.begin() + static_cast<long>(stops)}, 1 + draw() % 20,
            budget, &bytes);
      if (draw() % 3 == 0) plan.expect(next);
      for (int some = draw() % 5; some > 0; --some) {
        const SampleId one = draw() % samples;
        bytes.learn({&one, 1});
        plan.returned({&one, 1});
        EXPECT_LE(plan.used(), budget);
        EXPECT_EQ(plan.used(), blocks_in_use(plan));
      }
      if (draw() % 3 == 0) plan.drop(draw() % samples);
      order = draw() % 4 == 0 ? shuffled(samples, draw()) : next;
    }
  }
}

}  // namespace
}  // namespace sluice::policy
