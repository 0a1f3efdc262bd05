// One session's history as the optimizer writes it; protocol/history.h says what it is. Pure: time
// is an argument (CLOCK_MONOTONIC, ns); one thread. Of the shared memory nothing is believed: what
// is needed again is kept here.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/history.h"

namespace sluice::optimizer {

class SessionHistory {
 public:
  // Before anything else. `shared` is all zero and outlives this.
  void begin(protocol::History* shared, uint64_t now_ns);

  // The last point is old enough for another.
  bool due(uint64_t now_ns) const { return now_ns >= next_ns_; }
  // Adds a point and publishes the epochs. Time, epoch, and what epochs count are filled in.
  void add(protocol::HistoryPoint point, uint64_t now_ns);

  // What is counted from now on belongs to this epoch; does nothing if that is not a later one.
  void enter(uint64_t epoch, uint64_t now_ns);
  uint64_t epoch() const { return epoch_; }
  void count(protocol::EpochField field, uint64_t by, uint64_t now_ns);
  // The same for what somebody else adds up: counts by how much each has grown.
  void streamed(uint64_t read, uint64_t memory, uint64_t late, uint64_t now_ns);

  // Epochs are as an order says, not passes over a file.
  bool by_order() const { return by_order_; }
  void set_by_order() { by_order_ = true; }

  static constexpr uint64_t kFirstIntervalNs = 10'000'000;

 private:
  uint64_t since_begin(uint64_t now_ns) const;
  protocol::EpochEntry& present(uint64_t now_ns);
  void open(uint64_t now_ns);
  void halve();

  protocol::History* shared_ = nullptr;
  uint64_t begin_ns_ = 0, next_ns_ = 0;
  uint64_t interval_ns_ = kFirstIntervalNs;
  uint64_t points_ = 0;
  uint64_t epoch_ = 0, epochs_seen_ = 0;
  uint64_t unpublished_ = 0;  // entries from here on have changed
  bool by_order_ = false;
  std::vector<protocol::EpochEntry> entries_;
  protocol::EpochEntry totals_{};  // of what is counted
  uint64_t read_ = 0, memory_ = 0, late_ = 0;
};

}  // namespace sluice::optimizer
