// Every memory ordering of the event ring, in one place.
//
// A bounded queue with many producers (threads and signal handlers of one process) and one
// consumer (the optimizer). A producer claims a position by compare-and-swap on `tail`, fills
// the entry and releases its `sequence`; the consumer acquires `sequence`, copies the entry and
// releases `head`. Nobody waits for anybody: a full ring drops the event and counts it, and an
// entry whose producer died between claim and release is skipped by the consumer on its own
// deadline. push() is async-signal-safe: a handler that interrupts a producer claims the next
// position and returns.
#pragma once

#include <cstdint>

#include "protocol/ring.h"

namespace sluice::protocol {

// What a producer hands over; see Event for units.
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
  // Sequentially consistent, for ring_doorbell_quietly; on a line that is ours at the moment.
  event.sequence.exchange(position + 1, std::memory_order_seq_cst);
  return true;
}

enum class Take { kEvent, kEmpty, kUnfinished };

// Takes the oldest event. kUnfinished: its producer has claimed but not released it; call
// skip() once it stayed so for longer than a producer can take. Optimizer only, one thread.
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

// After push(): true if the optimizer sleeps and must be woken with FUTEX_WAKE on `doorbell`.
// The full fence orders our publication against its going to sleep (see may_sleep).
inline bool ring_doorbell(Header& header) {
  header.doorbell.fetch_add(1, std::memory_order_seq_cst);
  return header.waiting.load(std::memory_order_seq_cst) != 0;
}

// The same after an event that nobody waits for: an optimizer that dozes is woken only while there
// is still room for what comes until it has come to itself. The doorbell's line, which all
// processes of the session share, is left alone unless somebody sleeps: push() has ordered our
// publication before this look, and the optimizer looks at the rings after saying that it sleeps.
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
// returned value of the doorbell. With ring_doorbell's order no event can be slept over.
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
