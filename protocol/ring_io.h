// Every memory ordering of the event ring, in one place.
//
// A bounded queue with many producers (threads and signal handlers of one process) and one consumer
// (the optimizer). A producer claims a position by compare-and-swap on `tail`, fills the entry and
// releases its `sequence`; the consumer acquires `sequence`, copies the entry and releases `head`.
// Neither side waits: a full ring drops the event and counts it, and the consumer skips an entry
// whose producer died between claim and release, after a deadline of its own. push() is
// async-signal-safe: a handler that interrupts a producer claims the next position and returns.
#pragma once

#include <cstdint>

#include "protocol/ring.h"

namespace sluice::protocol {

// What a producer passes to push(); see Event for units.
struct EventData {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint32_t file = 0;
  uint32_t tid = 0;
  EventKind kind = EventKind::kNone;
  uint16_t flags = 0;
};

inline void count(Slot& slot, ClientMetric metric, uint64_t by = 1) {
  slot.metrics[static_cast<uint32_t>(metric)].fetch_add(by, std::memory_order_relaxed);
}

// Adds an event. Returns false, and counts events_dropped, if the ring is full. Any thread of
// the slot's process; async-signal-safe.
inline bool push(Slot& slot, const EventData& data) {
  uint64_t position = slot.tail.load(std::memory_order_relaxed);
  do {
    // Acquire pairs with the consumer's release of head: the entry has been copied out.
    const uint64_t taken = slot.head.load(std::memory_order_acquire);
    if (position - taken >= kRingEntries) {
      count(slot, ClientMetric::events_dropped);
      return false;
    }
  } while (!slot.tail.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
  Event& event = slot.ring[position % kRingEntries];
  event.offset = data.offset;
  event.length = data.length;
  event.time_ns = data.time_ns;
  event.address = data.address;
  event.file = data.file;
  event.tid = data.tid;
  event.kind = static_cast<uint16_t>(data.kind);
  event.flags = data.flags;
  // Sequentially consistent, for ring_doorbell_quietly; on a cache line that this thread owns now.
  event.sequence.exchange(position + 1, std::memory_order_seq_cst);
  return true;
}

enum class Take { kEvent, kEmpty, kUnfinished };

// Takes the oldest event. kUnfinished: its producer has claimed but not released it; call skip()
// once that has lasted longer than any producer takes. Optimizer only, one thread.
inline Take take(Slot& slot, EventData& out) {
  const uint64_t position = slot.head.load(std::memory_order_relaxed);
  Event& event = slot.ring[position % kRingEntries];
  if (event.sequence.load(std::memory_order_seq_cst) != position + 1) {
    const uint64_t claimed = slot.tail.load(std::memory_order_relaxed);
    return claimed != position ? Take::kUnfinished : Take::kEmpty;
  }
  out.offset = event.offset;
  out.length = event.length;
  out.time_ns = event.time_ns;
  out.address = event.address;
  out.file = event.file;
  out.tid = event.tid;
  out.kind = static_cast<EventKind>(event.kind);
  out.flags = event.flags;
  slot.head.store(position + 1, std::memory_order_release);
  return Take::kEvent;
}

// Gives up on an unfinished entry. Optimizer only.
inline void skip(Slot& slot) {
  slot.head.store(slot.head.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// After push(): true if the optimizer sleeps and must be woken with FUTEX_WAKE on `doorbell`. The
// full fence orders the caller's publication against the optimizer's going to sleep (may_sleep).
inline bool ring_doorbell(Header& header) {
  header.doorbell.fetch_add(1, std::memory_order_seq_cst);
  return header.waiting.load(std::memory_order_seq_cst) != 0;
}

// The same after an event without urgency: an optimizer that dozes is woken only when the ring may
// fill up before it wakes by itself. The doorbell's cache line, which all processes of the session
// share, is written only if the optimizer sleeps: push() has ordered the publication before this
// look, and the optimizer looks at the rings after announcing that it sleeps.
inline bool ring_doorbell_quietly(Header& header, const Slot& slot) {
  const uint32_t waiting = header.waiting.load(std::memory_order_seq_cst);
  if (waiting == static_cast<uint32_t>(Waiting::kNo)) return false;
  if (waiting == static_cast<uint32_t>(Waiting::kDozes) &&
      slot.tail.load(std::memory_order_relaxed) - slot.head.load(std::memory_order_relaxed) <
          kRingEntries / 4) {
    return false;
  }
  header.doorbell.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

// The optimizer announces that it sleeps, then looks at the rings once more, then waits on the
// returned value of the doorbell. With ring_doorbell's order it cannot sleep past an event.
inline uint32_t may_sleep(Header& header, Waiting how = Waiting::kSleeps) {
  header.waiting.store(static_cast<uint32_t>(how), std::memory_order_seq_cst);
  return header.doorbell.load(std::memory_order_seq_cst);
}
inline void woke(Header& header) { header.waiting.store(0, std::memory_order_seq_cst); }

// Claims a slot for process `pid`. Returns nullptr if all are taken. Async-signal-safe.
inline Slot* claim_slot(Shared& shared, uint32_t pid) {
  for (Slot& slot : shared.slots) {
    uint32_t free_pid = 0;
    if (slot.pid.load(std::memory_order_relaxed) == 0 &&
        slot.pid.compare_exchange_strong(free_pid, pid, std::memory_order_acq_rel)) {
      return &slot;
    }
  }
  return nullptr;
}

}  // namespace sluice::protocol
