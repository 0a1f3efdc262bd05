// What one reader reads of a file in parts, from its begin to its end: a rank of a tensor-parallel
// job reads its rows of every tensor, a query its columns of every row group. Where the runs and
// the distances between them repeat, as the layers of a model do, the next ones are known.
//
// The last runs that were the same a period ago predict as many runs as they are; a run that
// differs ends the prediction. Runs are what was read, in the file's order: threads that share a
// run read it in several places at once. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

class Strides {
 public:
  // One fault maps up to 64 KiB of cached pages around it: where a run begins and ends is known
  // within that. Runs that are closer than this are one.
  static constexpr uint64_t kBlur = 128 << 10;

  // The reader was found to have read exactly `range`. False: it is not what was expected.
  bool on_read(Range range, uint64_t time_ns);

  // What it is expected to read next, at most `most` bytes of it: if predicted(), the current run
  // and those that follow it, in the file's order; else what follows the places that it reads.
  std::vector<Range> expected(uint64_t most) const;
  bool predicted() const { return !pattern_.empty(); }

  const std::vector<Range>& runs() const { return runs_; }  // the furthest, in the file's order
  uint64_t position() const { return runs_.empty() ? 0 : runs_.back().end; }  // bytes
  uint64_t last_ns() const { return last_ns_; }
  double rate() const { return rate_; }  // bytes per second that it reads; 0: not known

 private:
  // A run, from the begin of the one before it. Bytes.
  struct Step {
    uint64_t stride = 0, most = 0;  // the least and the most that were seen
    uint64_t length = 0;            // likewise the most
  };
  static constexpr size_t kRuns = 96;  // remembered, the furthest
  static constexpr size_t kMostPeriod = 32;
  static constexpr size_t kPlaces = 4;    // at which threads read
  static constexpr uint64_t kActive = 6;  // reads after which a place is left
  static constexpr size_t kFew = 4;       // runs: too few for a usual length
  static constexpr size_t kSkipped = 3;

  // Adds to the runs. True: a run began behind all others.
  bool add(Range range);
  void note_place(uint64_t at);
  bool follow(uint64_t begin);
  uint64_t length_at(uint64_t begin) const;
  size_t matched(size_t period) const;
  void find_pattern();
  Step step(size_t run) const;
  uint64_t usual_length() const;
  uint64_t trusted(uint64_t length) const;
  void measure(uint64_t bytes, uint64_t time_ns);

  std::vector<Range> runs_;  // in the file's order
  // Bytes that lie in the runs that were read last, latest first, and when: by number of the read.
  std::vector<std::pair<uint64_t, uint64_t>> places_;
  uint64_t reads_ = 0;
  // The runs of a period, the current one last; empty: the next runs are not known.
  std::vector<Step> pattern_;
  size_t at_ = 0;       // the current one
  uint64_t begin_ = 0;  // bytes, of the current one
  size_t matched_ = 0;  // runs at the end that were the same a period ago
  uint64_t last_ns_ = 0, mark_ns_ = 0, marked_ = 0;
  double rate_ = 0;
};

}  // namespace sluice::policy
