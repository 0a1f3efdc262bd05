// The stream tracker, mostly by properties that must hold for any seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "policy/streams/tracker.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kStepNs = 1'000'000;

Access read_at(uint64_t offset, uint64_t length, uint64_t reader, uint64_t time) {
  return {Access::Kind::kRead, offset, length, time, reader, SessionId{1}};
}

Access trip_at(uint64_t offset, uint64_t cell, uint64_t reader, uint64_t time) {
  return {Access::Kind::kTrip, offset, cell - offset % cell, time, reader, SessionId{1}};
}

size_t confirmed(const Tracker& tracker) {
  return static_cast<size_t>(std::count_if(tracker.streams().begin(), tracker.streams().end(),
                                           [](const Stream& stream) { return stream.confirmed; }));
}

TEST(Tracker, ASequentialRunIsOneStreamConfirmedByItsSecondEvent) {
  Tracker tracker;
  const auto first = tracker.on_access(read_at(0, 128 * kKiB, 1, 1), nullptr);
  EXPECT_TRUE(first.begun);
  ASSERT_NE(first.stream, nullptr);
  EXPECT_FALSE(first.stream->confirmed);
  const auto second = tracker.on_access(read_at(128 * kKiB, 128 * kKiB, 1, kStepNs), nullptr);
  EXPECT_FALSE(second.begun);
  EXPECT_TRUE(second.confirmed);
  EXPECT_EQ(second.before, 128 * kKiB);
  EXPECT_EQ(second.stream->position, 256 * kKiB);
  for (uint64_t i = 2; i < 1000; ++i) {
    const auto more =
        tracker.on_access(read_at(i * 128 * kKiB, 128 * kKiB, 1, i * kStepNs), nullptr);
    ASSERT_FALSE(more.begun);
    ASSERT_FALSE(more.confirmed);
  }
  EXPECT_EQ(tracker.streams().size(), 1u);
  // 128 KiB a millisecond.
  EXPECT_NEAR(tracker.streams().front().rate, 131.072e6, 2e6);
}

TEST(Tracker, ACallThatBeginsOpensItsRangeWhichItsEndPasses) {
  Tracker tracker;
  Access begun = read_at(3 * kMiB, 90 * kMiB, 1, 1);
  begun.kind = Access::Kind::kBegun;
  const auto outcome = tracker.on_access(begun, nullptr);
  EXPECT_EQ(outcome.stream->position, 3 * kMiB);
  EXPECT_EQ(outcome.stream->opened, 93 * kMiB);
  EXPECT_TRUE(outcome.stream->exact);
  const auto ended = tracker.on_access(read_at(3 * kMiB, 90 * kMiB, 1, kStepNs), nullptr);
  EXPECT_FALSE(ended.begun);
  EXPECT_EQ(ended.before, 3 * kMiB);
  EXPECT_EQ(ended.stream->position, 93 * kMiB);
  EXPECT_EQ(ended.stream->opened, 93 * kMiB);
}

TEST(Tracker, ATripGivesAPositionAndAnUpperBound) {
  Tracker tracker;
  const auto outcome = tracker.on_access(trip_at(3 * kMiB, 8 * kMiB, 1, 1), nullptr);
  EXPECT_EQ(outcome.stream->position, 3 * kMiB);
  EXPECT_EQ(outcome.stream->opened, 8 * kMiB);
  EXPECT_FALSE(outcome.stream->exact);
  const auto next = tracker.on_access(trip_at(8 * kMiB, 8 * kMiB, 1, kStepNs), nullptr);
  EXPECT_TRUE(next.confirmed);
  EXPECT_EQ(next.stream->opened, 16 * kMiB);
}

TEST(Tracker, ReadersThatTakeTurnsAreOneStream) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U}) {
    std::mt19937 random(seed);
    for (const unsigned readers : {2U, 4U, 8U, 16U}) {
      Tracker tracker;
      // Reader r reads records r, r + n, r + 2n, ... at its own pace, never more than a round off.
      std::vector<uint64_t> next(readers);
      for (unsigned r = 0; r < readers; ++r) next[r] = r;
      const uint64_t record = 100 * kKiB + random() % (100 * kKiB);
      uint64_t time = 0;
      for (int event = 0; event < 2000; ++event) {
        const uint64_t slowest = *std::min_element(next.begin(), next.end());
        unsigned reader = static_cast<unsigned>(random() % readers);
        if (next[reader] > slowest + readers) {
          reader = static_cast<unsigned>(std::min_element(next.begin(), next.end()) - next.begin());
        }
        tracker.on_access(
            read_at(next[reader] * record, record, (reader + 1ULL) << 32, time += kStepNs),
            nullptr);
        next[reader] += readers;
      }
      EXPECT_EQ(tracker.streams().size(), 1u) << "seed " << seed << " readers " << readers;
      EXPECT_EQ(tracker.streams().front().readers.size(), readers);
    }
  }
}

TEST(Tracker, TripsOfProcessesThatTakeTurnsAreOneStream) {
  constexpr uint64_t kCell = 8 * kMiB;
  Tracker tracker;
  std::set<std::pair<unsigned, uint64_t>> open;
  uint64_t time = 0;
  for (uint64_t record = 0; record < 4000; ++record) {
    const unsigned reader = record % 4;
    const uint64_t offset = record * 196 * kKiB;
    if (open.insert({reader, offset / kCell}).second) {
      tracker.on_access(trip_at(offset, kCell, (reader + 1ULL) << 32, time += kStepNs), nullptr);
    }
  }
  EXPECT_EQ(tracker.streams().size(), 1u);
  EXPECT_TRUE(tracker.streams().front().confirmed);
}

TEST(Tracker, TheTailIsTheSlowestReaderThatIsStillAlive) {
  Tracker tracker;
  tracker.on_access(read_at(0, kMiB, 1ULL << 32, 1), nullptr);
  tracker.on_access(read_at(kMiB, kMiB, 2ULL << 32, kStepNs), nullptr);
  const Stream& stream = tracker.streams().front();
  EXPECT_EQ(stream.position, 2 * kMiB);
  EXPECT_EQ(stream.tail(kStepNs, 1000 * kStepNs), kMiB);
  EXPECT_EQ(stream.tail(5000 * kStepNs, 1000 * kStepNs), 2 * kMiB);  // both silent for long
  tracker.remove_process(1);
  EXPECT_EQ(tracker.streams().front().tail(kStepNs, 1000 * kStepNs), 2 * kMiB);
}

// LMDB touches a root page in the middle of its file before its cursor begins in front: the run
// that arrives there continues as one stream, and nothing is left behind to read in vain.
TEST(Tracker, ARunThatMeetsAPlaceTouchedBeforeStaysOneStream) {
  constexpr uint64_t kCell = 8 * kMiB;
  Tracker tracker;
  uint64_t time = 1;
  tracker.on_access(trip_at(31 * kMiB, kCell, 1, time), nullptr);
  for (const uint64_t at : {0 * kCell, 1 * kCell, 2 * kCell, 4 * kCell, 5 * kCell}) {
    tracker.on_access(trip_at(at, kCell, 1, time += kStepNs), nullptr);  // cell 3 is open already
  }
  ASSERT_EQ(tracker.streams().size(), 1u);
  EXPECT_TRUE(tracker.streams().front().confirmed);
  EXPECT_EQ(tracker.streams().front().position, 5 * kCell);
}

TEST(Tracker, OneReaderInTwoPlacesHasTwoStreams) {
  Tracker tracker;
  uint64_t time = 1;
  for (uint64_t i = 0; i < 50; ++i) {
    tracker.on_access(read_at(i * kMiB, kMiB, 1, time += kStepNs), nullptr);
    tracker.on_access(read_at(kGiB + i * kMiB, kMiB, 1, time += kStepNs), nullptr);
  }
  EXPECT_EQ(confirmed(tracker), 2u);
}

TEST(Tracker, FarOffAccessBeginsAnotherStream) {
  Tracker tracker;
  uint64_t time = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    tracker.on_access(read_at(i * kMiB, kMiB, 1, time += kStepNs), nullptr);
    tracker.on_access(read_at(10 * kGiB + i * kMiB, kMiB, 2, time += kStepNs), nullptr);
  }
  EXPECT_EQ(tracker.streams().size(), 2u);
  EXPECT_EQ(confirmed(tracker), 2u);
}

TEST(Tracker, RandomAccessFindsNoStreams) {
  for (const unsigned seed : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U}) {
    std::mt19937_64 random(seed);
    Tracker tracker;
    uint64_t time = 0, given = 0, wrong = 0;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t offset = random() % (64 * kGiB / 4096) * 4096;
      const auto outcome = tracker.on_access(read_at(offset, 4096, 1, time += kStepNs), nullptr);
      if (i < 100) continue;
      given += outcome.stream != nullptr ? 1 : 0;
      wrong += outcome.confirmed ? 1 : 0;
    }
    EXPECT_TRUE(tracker.random()) << seed;
    EXPECT_LE(given, 20u) << seed;  // of 3900: chance neighbours
    EXPECT_LE(wrong, 10u) << seed;
    EXPECT_LE(tracker.streams().size(), kMaxStreams);
  }
}

TEST(Tracker, ARunAmongRandomAccessIsStillFound) {
  std::mt19937_64 random(42);
  Tracker tracker;
  uint64_t time = 0, found = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    for (int noise = 0; noise < 3; ++noise) {
      tracker.on_access(read_at(100 * kGiB + random() % (500 * kGiB), 4096, 9, time += kStepNs),
                        nullptr);
    }
    const auto run =
        tracker.on_access(read_at(i * 256 * kKiB, 256 * kKiB, 1, time += kStepNs), nullptr);
    found += run.stream != nullptr && run.stream->confirmed ? 1 : 0;
  }
  EXPECT_GE(found, 490u);
}

TEST(Tracker, RandomnessWearsOffOnceRunsAreSeen) {
  std::mt19937_64 random(7);
  Tracker tracker;
  uint64_t time = 0;
  for (int i = 0; i < 100; ++i) {
    tracker.on_access(read_at(random() % (500 * kGiB), 4096, 9, time += kStepNs), nullptr);
  }
  ASSERT_TRUE(tracker.random());
  for (uint64_t i = 0; i < 50; ++i) {
    tracker.on_access(read_at(900 * kGiB + i * kMiB, kMiB, 1, time += kStepNs), nullptr);
  }
  EXPECT_FALSE(tracker.random());
}

TEST(Tracker, OnRandomEndsWhatIsNotConfirmed) {
  Tracker tracker;
  tracker.on_access(read_at(0, kMiB, 1, 1), nullptr);
  tracker.on_access(read_at(kMiB, kMiB, 1, 2), nullptr);
  const uint32_t run = tracker.streams().front().id;
  tracker.on_access(read_at(100 * kMiB, 4096, 1, 3), nullptr);
  std::vector<uint32_t> evicted;
  tracker.on_random(&evicted);
  EXPECT_EQ(evicted.size(), 1u);
  EXPECT_NE(tracker.find(run), nullptr);
  EXPECT_EQ(tracker.on_access(read_at(300 * kMiB, 4096, 1, 4), nullptr).stream, nullptr);
}

TEST(Tracker, EvictionPrefersSingleAccessesAndReportsEveryOne) {
  Tracker tracker;
  std::vector<uint32_t> evicted;
  tracker.on_access(read_at(0, kMiB, 1, 1), &evicted);
  tracker.on_access(read_at(kMiB, kMiB, 1, 2), &evicted);
  const uint32_t run = tracker.streams().front().id;
  std::set<uint32_t> known{run};
  for (uint64_t i = 1; i < 200; ++i) {
    tracker.on_access(read_at(i * kGiB, 4096, 1, 2 + i), &evicted);
    known.insert(tracker.streams().back().id);
  }
  EXPECT_NE(tracker.find(run), nullptr);
  EXPECT_EQ(tracker.streams().size(), kMaxStreams);
  EXPECT_EQ(known.size(), kMaxStreams + evicted.size());
}

// Whatever comes: bounded, positions never move back, opened is never before position.
TEST(Tracker, InvariantsHoldForAnyInput) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    Tracker tracker;
    std::map<uint32_t, uint64_t> positions;
    for (int i = 0; i < 3000; ++i) {
      Access access;
      access.kind = static_cast<Access::Kind>(random() % 3);
      access.offset = random() % (random() % 2 != 0 ? 64 * kMiB : 1ULL << 61);
      access.length = 1 + random() % (random() % 2 != 0 ? kMiB : 1ULL << 61);
      access.time_ns = random() % (1ULL << 40);  // time may run backwards: clients write it
      access.reader = random() % 200 << 32;
      access.session = SessionId{1};
      std::vector<uint32_t> evicted;
      tracker.on_access(access, &evicted);
      for (const uint32_t id : evicted) positions.erase(id);
      ASSERT_LE(tracker.streams().size(), kMaxStreams);
      for (const Stream& stream : tracker.streams()) {
        ASSERT_GE(stream.position, positions[stream.id]);
        ASSERT_GE(stream.opened, stream.position);
        ASSERT_LE(stream.readers.size(), kMaxStreamReaders);
        ASSERT_GE(stream.rate, 0);
        ASSERT_LE(stream.tail(1ULL << 40, 1ULL << 41), stream.position);
        positions[stream.id] = stream.position;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::policy
