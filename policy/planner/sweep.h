// Whether a mapped file is worth reading whole: its readers take runs of it in an order that is not
// the file's (tensors by name, shuffled, by several threads), so that no stream can say what comes
// next, but all of it does. Then it is read in its own order, behind what streams want.
//
// One run after the other in ascending order, with or without gaps, is no evidence: a stream, or a
// rank of a tensor-parallel job that reads its rows of every tensor. What is swept is bounded by
// what was read: a job that reads a header and a tensor reads little more.
//
// Pure; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "policy/planner/page_ledger.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

class Sweep {
 public:
  static constexpr uint64_t kShare = 8;  // swept / read in runs, at most

  // Readers were found to have read exactly `range`.
  void on_read(Range range);

  bool wanted() const { return evident_ && swept_ < kShare * in_runs_; }
  // The next piece of the file that is not in `read` and not known to be in memory, or on its way:
  // at most one block, ending at a block's boundary. nullopt: nothing is left, or wanted.
  std::optional<Range> next(const IntervalSet& read, const PageLedger& pages, uint64_t size,
                            uint64_t block);
  // What next() gave is cached already, or is being read now. REQUIRES: from the last next().
  uint64_t position() const { return cursor_; }  // all before it was read, or is there
  void skip(Range piece) { cursor_ = piece.end; }
  void start(Range piece);

 private:
  struct Run {
    Range range;
    bool behind = false;  // it began far behind what was read furthest
  };
  static constexpr size_t kRuns = 16;   // remembered; the longest idle is evicted
  static constexpr size_t kRecent = 8;  // runs that were continued last

  // The run that `range` continues, which is made the most recent one.
  Run* continued(Range range);
  bool returned(const Run& run) const;

  std::vector<Run> runs_;                   // most recent last
  std::array<uint64_t, kRecent> recent_{};  // begins of runs, most recent last
  uint64_t furthest_ = 0, in_runs_ = 0, swept_ = 0, cursor_ = 0;
  unsigned returns_ = 0;
  bool evident_ = false;
};

}  // namespace sluice::policy
