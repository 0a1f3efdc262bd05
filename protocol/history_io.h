// Every memory ordering of the history, in one place.
//
// A sequence lock with one writer, the optimizer: `sequence` is odd while it writes. A reader
// copies and accepts the copy only if `sequence` was even before and is the same after. Everything
// in between is released by the writer and acquired by the reader, one word at a time, so that a
// word of a change cannot be seen without the odd `sequence` before it.
#pragma once

#include <algorithm>

#include "protocol/history.h"

namespace sluice::protocol {

// One change: from construction to destruction. Optimizer only, one thread.
class HistoryChange {
 public:
  explicit HistoryChange(History& history) : history_(history) {
    sequence_ =
        history.sequence.load(std::memory_order_relaxed) | 1;  // a client may have overwritten it
    history.sequence.store(sequence_, std::memory_order_relaxed);
  }
  ~HistoryChange() { history_.sequence.store(sequence_ + 1, std::memory_order_release); }
  HistoryChange(const HistoryChange&) = delete;
  HistoryChange& operator=(const HistoryChange&) = delete;

  static void set(std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_release);
  }

 private:
  History& history_;
  uint64_t sequence_;
};

struct HistoryCopy {
  uint64_t points, epochs, epochs_seen, interval_ns;
  HistoryPoint point[kHistoryPoints];
  EpochEntry epoch[kHistoryEpochs];
  uint64_t pairs_seen, pairs;
  uint64_t pair_count[kPairCounts], pair[kMostPairs];
};

// False: the history is being changed, or its writer died during a change; `to` is then invalid.
// Does not wait; async-signal-safe.
inline bool copy(const History& from, HistoryCopy& to) {
  constexpr int kTries = 16;
  const auto get = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_acquire);
  };
  for (int tried = 0; tried < kTries; ++tried) {
    const uint64_t sequence = get(from.sequence);
    if (sequence % 2 != 0) continue;
    to.points = std::min<uint64_t>(get(from.points), kHistoryPoints);
    to.epochs = std::min<uint64_t>(get(from.epochs), kHistoryEpochs);
    to.epochs_seen = std::max(get(from.epochs_seen), to.epochs);
    to.interval_ns = get(from.interval_ns);
    for (uint64_t at = 0; at < to.points; ++at) {
      for (uint32_t i = 0; i < kHistoryFieldCount; ++i) to.point[at][i] = get(from.point[at][i]);
    }
    for (uint64_t at = 0; at < to.epochs; ++at) {
      for (uint32_t i = 0; i < kEpochFieldCount; ++i) to.epoch[at][i] = get(from.epoch[at][i]);
    }
    to.pairs_seen = get(from.pairs_seen);
    to.pairs = std::min<uint64_t>({get(from.pairs), to.pairs_seen, kMostPairs});
    for (uint32_t i = 0; i < kPairCounts; ++i) to.pair_count[i] = get(from.pair_count[i]);
    for (uint64_t i = 0; i < to.pairs; ++i) to.pair[i] = get(from.pair[i]);
    if (get(from.sequence) == sequence) return true;
  }
  return false;
}

}  // namespace sluice::protocol
