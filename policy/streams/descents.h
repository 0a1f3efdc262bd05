// What one reader reads from its end to its begin: the C library copies a large block that way if
// source and destination lie alike within their pages, so that all tensors of a mapped file may be
// read backwards, one after the other in the file's order. The kernel reads nothing ahead then.
//
// A run that was continued downwards a few times is a descent. Where each one ended at the begin of
// the next one's bytes, the next ones are known as well. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

class Descents {
 public:
  static constexpr uint64_t kPiece = 1 << 20;  // bytes: expected() gives so much at a time

  // The reader was found to have read exactly `range`. True: as part of a descent.
  bool on_read(Range range);

  // One of the last reads was part of a descent.
  bool active() const { return quiet_ < kQuiet; }

  // What is to be read next, at most `most` bytes: pieces in the order in which they are wanted.
  std::vector<Range> expected(uint64_t most) const;

 private:
  struct Run {
    uint64_t low = 0, high = 0;  // bytes
    unsigned steps = 0;          // downwards
    uint64_t length() const { return high - low; }
  };
  static constexpr uint64_t kBlur = 128 << 10;  // as Strides::kBlur
  static constexpr unsigned kSteps = 3;         // of a descent, at least
  static constexpr unsigned kQuiet = 8;         // reads elsewhere that end it
  static constexpr size_t kRuns = 4;            // remembered: threads read in several places
  static constexpr size_t kLengths = 9;         // likewise; their median is the usual one
  static constexpr size_t kFew = 4;             // too few for that are fewer

  static bool descends(const Run& run) { return run.steps >= kSteps; }
  uint64_t trusted(uint64_t length) const;
  uint64_t floor_of(const Run& run, uint64_t most) const;
  void chain();

  std::vector<Run> runs_;          // most recent last
  std::vector<uint64_t> lengths_;  // of descents that are over, most recent last
  uint64_t top_ = 0;               // where the last of these began
  unsigned chained_ = 0;           // of these, whose bytes followed those of the one before
  unsigned quiet_ = kQuiet;        // reads since the last one of a descent
};

}  // namespace sluice::policy
