// The thread that empties one session's rings and sleeps on its doorbell. It checks only the form
// of ring entries; the core thread validates the events.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "protocol/ring_io.h"

namespace sluice::optimizer {

struct TakenEvent {
  uint32_t slot = 0;
  uint32_t pid = 0;  // as the client wrote it
  protocol::EventData data;
};

using ClientMetrics = std::array<uint64_t, protocol::kClientMetricCount>;

class RingReader {
 public:
  // Called on the reader's thread.
  struct Handler {
    std::function<void(std::vector<TakenEvent>)> events;
    std::function<void(uint32_t slot, uint32_t pid)> slot_taken;
    // With the slot's final counters. The slot becomes free when the call returns.
    std::function<void(uint32_t slot, uint32_t pid, const ClientMetrics&)> slot_freed;
    std::function<bool()> congested;  // true: leave events in the rings for now
    std::function<bool()> patient;    // true: sample events may wait a few milliseconds
  };

  // `shared` must outlive the reader.
  RingReader(protocol::Shared* shared, Handler handler);
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;
  ~RingReader();  // joins

  // The process of a slot has ended: takes what is left in its ring and frees it. Any thread.
  void free_slot(uint32_t slot, uint32_t pid);
  // Calls `then` on the reader's thread once everything that was in the rings before this call has
  // been handed to `events`; at the latest when the reader ends. Any thread.
  void after_events(std::function<void()> then);

 private:
  struct Seen {
    uint32_t pid = 0;
    uint64_t unfinished_since_ns = 0;  // 0: no unfinished entry
  };

  void run();
  void read_until_stopped();
  bool scan();
  bool scan_all();
  bool drain(uint32_t index, bool dead);
  void free_slots();
  void free_now(uint32_t slot, uint32_t pid);
  void ring();

  protocol::Shared* const shared_;
  const Handler handler_;
  std::array<Seen, protocol::kSlots> seen_;
  std::vector<TakenEvent> batch_;
  bool unfinished_ = false;
  bool cut_ = false;      // the last scan skipped rings
  bool sampled_ = false;  // sample events arrived since it last slept
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::deque<std::pair<uint32_t, uint32_t>> to_free_;  // guarded by mutex_
  std::vector<std::function<void()>> waiting_;         // guarded by mutex_: after_events()
  std::thread thread_;
};

}  // namespace sluice::optimizer
