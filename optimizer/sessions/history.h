// Writes one session's history (format: protocol/history.h). Pure: time is an argument
// (CLOCK_MONOTONIC, ns); one thread. Clients can write to the shared memory, so it is not trusted:
// all state that decides anything is held here.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/importance/pair_ledger.h"
#include "protocol/history.h"

namespace sluice::optimizer {

class SessionHistory {
 public:
  // REQUIRES: called first; `shared` is all zero and outlives this.
  void begin(protocol::History* shared, uint64_t now_ns);

  // Enough time has passed since the last point.
  bool due(uint64_t now_ns) const { return now_ns >= next_ns_; }
  // Adds a point and publishes the epochs. Fills in time, epoch and the sums of epoch counters.
  void add(protocol::HistoryPoint point, uint64_t now_ns);

  // Counts from now on belong to this epoch. No effect unless it is later than the present one.
  void enter(uint64_t epoch, uint64_t now_ns);
  uint64_t epoch() const { return epoch_; }
  void count(protocol::EpochField field, uint64_t by, uint64_t now_ns);
  // The same for sums that the scheduler computes: counts the growth of each since the last call.
  void streamed(uint64_t read, uint64_t memory, uint64_t late, uint64_t now_ns);

  // A sample is trained in place of another. REQUIRES: as PairLedger::add().
  void substituted(policy::PairLedger::Pair pair, uint64_t samples);

  // Epochs are those of a published order, not passes over a file.
  bool by_order() const { return by_order_; }
  void set_by_order() { by_order_ = true; }

  static constexpr uint64_t kFirstIntervalNs = 10'000'000;

 private:
  uint64_t since_begin(uint64_t now_ns) const;
  protocol::EpochEntry& present(uint64_t now_ns);
  void open(uint64_t now_ns);
  void halve();
  void publish_pairs();

  protocol::History* shared_ = nullptr;
  uint64_t begin_ns_ = 0, next_ns_ = 0;
  uint64_t interval_ns_ = kFirstIntervalNs;
  uint64_t points_ = 0;
  uint64_t epoch_ = 0, epochs_seen_ = 0;
  uint64_t unpublished_ = 0;  // entries from this index on have changed
  bool by_order_ = false;
  std::vector<protocol::EpochEntry> entries_;
  protocol::EpochEntry totals_{};  // sums over all epochs
  uint64_t read_ = 0, memory_ = 0, late_ = 0;
  policy::PairLedger pairs_;
};

}  // namespace sluice::optimizer
