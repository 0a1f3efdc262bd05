// The thread that empties rings, against well-behaved, dying and hostile producers.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <map>
#include <mutex>
#include <thread>

#include "optimizer/io/clock.h"
#include "optimizer/sessions/ring_reader.h"

namespace sluice::optimizer {
namespace {

using protocol::EventData;
using protocol::EventKind;
using protocol::Shared;
using protocol::Slot;

class Bench {
 public:
  Bench() {
    void* map =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = static_cast<Shared*>(map);
    RingReader::Handler handler;
    handler.events = [this](std::vector<TakenEvent> events) {
      const std::lock_guard lock(mutex_);
      events_.insert(events_.end(), events.begin(), events.end());
    };
    handler.slot_taken = [this](uint32_t slot, uint32_t pid) {
      const std::lock_guard lock(mutex_);
      taken_.emplace_back(slot, pid);
    };
    handler.slot_freed = [this](uint32_t slot, uint32_t, const ClientMetrics& metrics) {
      const std::lock_guard lock(mutex_);
      freed_[slot] = metrics;
    };
    handler.congested = [this] {
      const bool so = congested_.load();
      held_back_ += so ? 1 : 0;
      return so;
    };
    handler.patient = [this] { return patient_.load(); };
    reader_ = std::make_unique<RingReader>(shared_, std::move(handler));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    reader_.reset();
    munmap(shared_, sizeof(Shared));
  }

  void ring() {
    if (protocol::ring_doorbell(shared_->header)) {
      syscall(SYS_futex, &shared_->header.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }

  template <typename Condition>
  bool eventually(Condition condition, uint64_t seconds = 10) {
    const uint64_t deadline = now_ns() + seconds * kSecond;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (condition()) return true;
      }
      if (now_ns() > deadline) return false;
      usleep(500);
    }
  }

  Shared* shared_ = nullptr;
  std::mutex mutex_;
  std::vector<TakenEvent> events_;
  std::vector<std::pair<uint32_t, uint32_t>> taken_;
  std::map<uint32_t, ClientMetrics> freed_;
  std::atomic<bool> congested_{false};
  std::atomic<unsigned> held_back_{0};  // times that it had to wait
  std::atomic<bool> patient_{false};
  std::unique_ptr<RingReader> reader_;
};

EventData event(uint64_t offset, uint32_t tid) {
  return {offset, 1, 0, 0, 1, tid, EventKind::kRead, 0};
}

TEST(RingReader, EventsOfManyProducersComeWholeAndInEachOnesOrder) {
  Bench bench;
  constexpr unsigned kSlotsUsed = 3, kThreads = 3;
  constexpr uint64_t kEach = 20000;  // many times around the ring
  std::atomic<uint64_t> dropped{0};
  std::vector<std::thread> producers;
  for (unsigned s = 0; s < kSlotsUsed; ++s) {
    Slot* slot = protocol::claim_slot(*bench.shared_, 100 + s);
    ASSERT_NE(slot, nullptr);
    for (unsigned t = 0; t < kThreads; ++t) {
      producers.emplace_back([&, slot, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          // Retried, so that the count is exact; the library drops instead.
          while (!protocol::push(*slot, event(i, t))) {
            ++dropped;
            bench.ring();
            std::this_thread::yield();
          }
          bench.ring();
        }
      });
    }
  }
  for (std::thread& producer : producers) producer.join();
  ASSERT_TRUE(
      bench.eventually([&] { return bench.events_.size() == kSlotsUsed * kThreads * kEach; }));
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> next;
  for (const TakenEvent& taken : bench.events_) {
    ASSERT_EQ(taken.pid, 100 + taken.slot);
    ASSERT_EQ(taken.data.offset, (next[{taken.slot, taken.data.tid}]++));
  }
  uint64_t counted = 0;
  for (const Slot& slot : bench.shared_->slots) {
    counted += slot.metrics[static_cast<size_t>(protocol::ClientMetric::events_dropped)];
  }
  EXPECT_EQ(counted, dropped);
}

EventData sample(uint64_t index) {
  return {0, 0, 0, protocol::sample_key(1, index), 1, 1, EventKind::kSampleBegin, 0};
}

// What the library does behind an event of a sample. True: it woke the reader.
bool push_quietly(Bench& bench, Slot& slot, uint64_t index) {
  EXPECT_TRUE(protocol::push(slot, sample(index)));
  if (!protocol::ring_doorbell_quietly(bench.shared_->header, slot)) return false;
  syscall(SYS_futex, &bench.shared_->header.doorbell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  return true;
}

TEST(RingReader, EventsOfSamplesWaitForAPatientReaderToLookAgain) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 7);
  ASSERT_NE(slot, nullptr);
  const auto sleeps = [&](protocol::Waiting how) {
    return bench.shared_->header.waiting.load() == static_cast<uint32_t>(how);
  };
  // Asleep, whether patient or not, it is woken by the first: nothing is slept over.
  ASSERT_TRUE(bench.eventually([&] { return sleeps(protocol::Waiting::kSleeps); }));
  EXPECT_TRUE(push_quietly(bench, *slot, 0));
  ASSERT_TRUE(bench.eventually([&] { return bench.events_.size() == 1; }));
  ASSERT_TRUE(bench.eventually([&] { return sleeps(protocol::Waiting::kSleeps); }));
  bench.patient_ = true;
  uint64_t pushed = 1;
  unsigned dozing = 0;
  const uint64_t deadline = now_ns() + 20 * kSecond;
  for (; dozing < 50 && now_ns() < deadline; ++pushed) {
    dozing += sleeps(protocol::Waiting::kDozes) ? 1 : 0;
    push_quietly(bench, *slot, pushed);
    // Half full at most; a reader that dozes is woken before that, so that this does not wait for
    // good.
    while (slot->tail - slot->head > protocol::kRingEntries / 2 && now_ns() < deadline) {
      std::this_thread::yield();
    }
  }
  ASSERT_TRUE(bench.eventually([&] { return bench.events_.size() == pushed; }));
  EXPECT_EQ(dozing, 50U);
  // What a process waits for wakes it.
  push_quietly(bench, *slot, pushed++);
  ASSERT_TRUE(protocol::push(*slot, event(5, 1)));
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.events_.size() == pushed + 1; }));
  EXPECT_EQ(slot->metrics[static_cast<size_t>(protocol::ClientMetric::events_dropped)].load(), 0U);
}

TEST(RingReader, AWaiterIsCalledAfterEarlierEvents) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 7);
  ASSERT_NE(slot, nullptr);
  bench.patient_ = true;  // nothing wakes it for these
  constexpr uint64_t kDeclared = protocol::kRingEntries / 8;
  for (uint64_t round = 1; round <= 50; ++round) {
    for (uint64_t i = 0; i < kDeclared; ++i) push_quietly(bench, *slot, i);
    std::atomic<size_t> taken{0};
    bench.reader_->after_events([&] {
      const std::lock_guard lock(bench.mutex_);
      taken = bench.events_.size();
    });
    ASSERT_TRUE(bench.eventually([&] { return taken.load() != 0; }));
    EXPECT_EQ(taken.load(), round * kDeclared);
  }
  bool called = false;
  bench.congested_ = true;
  bench.reader_->after_events([&] { called = true; });
  bench.reader_.reset();
  EXPECT_TRUE(called) << "no caller waits for a reader that is gone";
}

TEST(RingReader, ADozingReaderIsWokenBeforeTheRingIsFull) {
  auto shared = std::make_unique<Shared>();
  Slot* slot = protocol::claim_slot(*shared, 7);
  ASSERT_NE(slot, nullptr);
  protocol::may_sleep(shared->header, protocol::Waiting::kDozes);
  uint32_t quiet = 0;
  do {
    ASSERT_TRUE(protocol::push(*slot, sample(quiet++)));
  } while (!protocol::ring_doorbell_quietly(shared->header, *slot));
  EXPECT_EQ(quiet, protocol::kRingEntries / 4);
  EXPECT_TRUE(protocol::ring_doorbell(shared->header));
}

TEST(RingReader, AFullRingDropsAndCountsAndLosesNothingElse) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 7);
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.taken_.size() == 1; }));
  bench.congested_ = true;
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.held_back_.load() > 0; }));
  uint64_t pushed = 0;
  for (uint64_t i = 0; i < 2 * protocol::kRingEntries; ++i)
    pushed += push(*slot, event(i, 1)) ? 1 : 0;
  EXPECT_GE(pushed, protocol::kRingEntries);
  EXPECT_LT(pushed, 2 * protocol::kRingEntries);
  bench.congested_ = false;
  bench.ring();
  EXPECT_TRUE(bench.eventually([&] { return bench.events_.size() == pushed; }));
}

TEST(RingReader, AnEntryWhoseProducerDiedIsSkippedAfterADeadline) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 7);
  ASSERT_TRUE(push(*slot, event(1, 1)));
  slot->tail.fetch_add(1);  // claimed, never filled
  ASSERT_TRUE(push(*slot, event(2, 1)));
  const uint64_t begin = now_ns();
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.events_.size() == 2; }));
  EXPECT_GE(now_ns() - begin, 90 * kMillisecond);
  EXPECT_EQ(bench.events_[1].data.offset, 2u);
}

TEST(RingReader, FreeingASlotTakesWhatIsLeftAndKeepsItsCounters) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 7);
  protocol::count(*slot, protocol::ClientMetric::checkpoints_hit, 5);
  ASSERT_TRUE(push(*slot, event(1, 1)));
  slot->tail.fetch_add(1);  // died in the middle of the next
  bench.reader_->free_slot(0, 7);
  ASSERT_TRUE(bench.eventually([&] { return bench.freed_.size() == 1; }));
  EXPECT_EQ(bench.events_.size(), 1u);
  EXPECT_EQ(bench.freed_[0][static_cast<size_t>(protocol::ClientMetric::checkpoints_hit)], 5u);
  ASSERT_TRUE(bench.eventually([&] { return slot->pid == 0; }));
  EXPECT_EQ(slot->generation, 1u);
  // The next process begins with a clean slot.
  ASSERT_EQ(protocol::claim_slot(*bench.shared_, 8), slot);
  EXPECT_EQ(slot->metrics[0], 0u);
  ASSERT_TRUE(push(*slot, event(9, 1)));
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.events_.size() == 2; }));
  EXPECT_EQ(bench.events_[1].pid, 8u);
  EXPECT_EQ(bench.events_[1].data.offset, 9u);
}

TEST(RingReader, ASlotThatWasTakenAgainIsNotFreed) {
  Bench bench;
  Slot* slot = protocol::claim_slot(*bench.shared_, 8);
  bench.reader_->free_slot(0, 7);  // of the one before
  bench.ring();
  ASSERT_TRUE(bench.eventually([&] { return bench.taken_.size() == 1; }));
  EXPECT_TRUE(bench.freed_.empty());
  EXPECT_EQ(slot->pid, 8u);
}

TEST(RingReader, NonsenseInTheIndicesNeitherHangsNorFloods) {
  Bench bench;
  Slot* hostile = protocol::claim_slot(*bench.shared_, 6);
  Slot* honest = protocol::claim_slot(*bench.shared_, 7);
  const auto from_honest = [&] {
    return std::count_if(bench.events_.begin(), bench.events_.end(),
                         [](const TakenEvent& taken) { return taken.slot == 1; });
  };
  int pushed = 0;
  for (const uint64_t tail : {uint64_t{1} << 63, UINT64_MAX, uint64_t{5000}}) {
    hostile->tail.store(tail);
    bench.ring();
    ASSERT_TRUE(push(*honest, event(1, 1)));
    ++pushed;
    bench.ring();
    ASSERT_TRUE(bench.eventually([&] { return from_honest() == pushed; }, 5));
    EXPECT_LE(bench.events_.size(), static_cast<size_t>(pushed) + protocol::kRingEntries);
  }
}

}  // namespace
}  // namespace sluice::optimizer
