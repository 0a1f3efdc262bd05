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
        const LogRange place = *log.place(sample);
        if (!log.is_written(sample)) continue;
        for (uint64_t at = place.offset / kBlock; at * kBlock < place.offset + place.length; ++at) {
          if (place.length != 0) blocks.insert(at);
        }
      }
    }
    count += blocks.size();
  }
  return count * kBlock;
}

// Runs an epoch, and checks each batch.
struct Epoch {
  uint64_t remote = 0, cached = 0, requests = 0;

  Epoch(LogPlan* plan, const std::vector<SampleId>& order, uint32_t batch, uint64_t budget) {
    for (size_t at = 0; at < order.size(); at += batch) {
      const std::span<const SampleId> now =
          std::span(order).subspan(at, std::min<size_t>(batch, order.size() - at));
      check_reads(*plan, now);
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
        const LogRange place = *current.place(sample);
        if (!current.is_written(sample) || place.length == 0) continue;
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
  LogPlan plan(bytes, 16, 20 << 20);
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
  LogPlan plan(bytes, 32, budget);
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
  LogPlan plan(bytes, 16, 64 << 20);
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
  LogPlan plan(bytes, 16, 64 << 20);
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
  LogPlan plan(bytes, 16, 64 << 20);
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
  LogPlan plan(bytes, 8, 64 << 20);
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
  LogPlan plan(bytes, 8, 64 << 20);
  plan.begin_epoch(shuffled(100, 2));
  Epoch(&plan, shuffled(100, 1), 8, 64 << 20);
  plan.drop(7);
  plan.drop(8);
  EXPECT_EQ(plan.used(), blocks_in_use(plan));
  plan.begin_epoch(shuffled(100, 3));
  EXPECT_EQ(Epoch(&plan, shuffled(100, 2), 8, 64 << 20).remote, 2U);
}

// Random orders with and without repetition, guesses right and wrong, budgets of all sizes, samples
// of less than a block and of many.
TEST(LogPlan, NeverExceedsItsBudgetNorReleasesWhatIsStillToBeRead) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    std::mt19937 draw(seed);
    const uint32_t samples = 1 + draw() % 200;
    const auto bytes = sizes(samples, draw() % 2 != 0 ? 3'000 : 40'000, seed);
    const uint64_t budget = draw() % (3 << 20);
    LogPlan plan(bytes, 1 + draw() % 20, budget);
    std::vector<SampleId> order = shuffled(samples, draw());
    for (int epoch = 0; epoch < 4; ++epoch) {
      std::vector<SampleId> next = shuffled(samples, draw());
      if (draw() % 4 == 0) next[draw() % samples] = next[0];  // with replacement
      plan.begin_epoch(draw() % 4 == 0 ? std::vector<SampleId>() : next);
      const size_t stops = draw() % 3 == 0 ? draw() % samples : samples;
      Epoch(&plan, {order.begin(), order.begin() + static_cast<long>(stops)}, 1 + draw() % 20,
            budget);
      if (draw() % 3 == 0) plan.expect(next);
      for (int some = draw() % 5; some > 0; --some) {
        const SampleId one = draw() % samples;
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
