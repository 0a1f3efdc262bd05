// The event ring: nothing lost but what is counted, nothing invented, in the order of each
// producer; wrap-around, a full ring, and an entry whose producer died.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "protocol/ring_io.h"

namespace sluice::protocol {
namespace {

uint64_t dropped(const Slot& slot) {
  return slot.metrics[static_cast<uint32_t>(ClientMetric::events_dropped)].load();
}

TEST(Ring, AFullRingDropsAndCounts) {
  auto slot = std::make_unique<Slot>();
  for (uint32_t i = 0; i < kRingEntries; ++i) ASSERT_TRUE(push(*slot, {.offset = i}));
  EXPECT_FALSE(push(*slot, {.offset = 1}));
  EXPECT_EQ(dropped(*slot), 1U);
  EventData out;
  for (uint32_t i = 0; i < kRingEntries; ++i) {
    ASSERT_EQ(take(*slot, out), Take::kEvent);
    EXPECT_EQ(out.offset, i);
  }
  EXPECT_EQ(take(*slot, out), Take::kEmpty);
  EXPECT_TRUE(push(*slot, {.offset = 2}));
}

TEST(Ring, EveryFieldArrives) {
  auto slot = std::make_unique<Slot>();
  push(*slot, {1, 2, 3, 4, 5, 6, EventKind::kZapped, kFlagAgain});
  EventData out;
  ASSERT_EQ(take(*slot, out), Take::kEvent);
  EXPECT_EQ(out.offset, 1U);
  EXPECT_EQ(out.length, 2U);
  EXPECT_EQ(out.time_ns, 3U);
  EXPECT_EQ(out.address, 4U);
  EXPECT_EQ(out.file, 5U);
  EXPECT_EQ(out.tid, 6U);
  EXPECT_EQ(out.kind, EventKind::kZapped);
  EXPECT_EQ(out.flags, kFlagAgain);
}

TEST(Ring, AnEntryClaimedAndNeverReleasedIsSkipped) {
  auto slot = std::make_unique<Slot>();
  slot->tail.fetch_add(1);  // a producer that died here
  ASSERT_TRUE(push(*slot, {.offset = 7}));
  EventData out;
  EXPECT_EQ(take(*slot, out), Take::kUnfinished);
  skip(*slot);
  ASSERT_EQ(take(*slot, out), Take::kEvent);
  EXPECT_EQ(out.offset, 7U);
}

TEST(Ring, ManyProducersKeepTheirOrder) {
  auto slot = std::make_unique<Slot>();
  constexpr int kProducers = 4;
  constexpr uint64_t kEach = 100000;
  std::vector<std::thread> producers;
  std::atomic<int> running{kProducers};
  for (uint32_t id = 0; id < kProducers; ++id) {
    producers.emplace_back([&, id] {
      for (uint64_t i = 1; i <= kEach; ++i) push(*slot, {.offset = i, .length = i * 3, .tid = id});
      running.fetch_sub(1);
    });
  }
  uint64_t last[kProducers] = {};
  uint64_t taken = 0;
  EventData out;
  for (;;) {
    const bool ended = running.load() == 0;
    const Take what = take(*slot, out);
    if (what == Take::kEmpty && ended) break;
    if (what != Take::kEvent) continue;
    ASSERT_LT(out.tid, static_cast<uint32_t>(kProducers));
    ASSERT_GT(out.offset, last[out.tid]);
    ASSERT_EQ(out.length, out.offset * 3) << "a torn entry";
    last[out.tid] = out.offset;
    ++taken;
  }
  for (auto& producer : producers) producer.join();
  EXPECT_EQ(taken + dropped(*slot), kProducers * kEach);
}

TEST(Slots, EachIsClaimedOnce) {
  auto shared = std::make_unique<Shared>();
  std::vector<std::thread> threads;
  std::atomic<uint32_t> got{0};
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t k = 0; k < kSlots; ++k) {
        if (claim_slot(*shared, 1 + i * 1000 + k) != nullptr) got.fetch_add(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(got.load(), kSlots);
  EXPECT_EQ(claim_slot(*shared, 9), nullptr);
}

}  // namespace
}  // namespace sluice::protocol
