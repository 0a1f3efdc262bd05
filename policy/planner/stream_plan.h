// How far ahead of one stream's reader to read. Pure.
//
// Published mode (a fixed size): a pre-cache is `size` bytes; when the reader has passed
// `threshold` percent of it the next `size` bytes follow from its end.
// Automatic mode: the target stays a window ahead of the reader. The window starts small, grows by
// the bytes that arrive, and is bounded by the budget and by what the storage delivers in a third
// of a second.
#pragma once

#include <cstdint>

#include "policy/streams/stream.h"

namespace sluice::policy {

struct PlanOptions {
  uint64_t distance = 0;  // bytes between checkpoints, 0: automatic
  uint64_t size = 0;      // bytes of a pre-cache, 0: automatic
  uint32_t threshold = 75;
};

// The current state of a stream's surroundings.
struct PlanInput {
  uint64_t file_size = 0;
  uint64_t block = 0;                // bytes a read
  double bandwidth = 0;              // bytes per second, 0: not known
  uint64_t budget = 0;               // bytes, for all streams
  uint32_t streams = 1;              // confirmed streams that share the budget
  uint64_t likely_end = UINT64_MAX;  // offset that the reader will hardly read beyond
};

// The effective threshold in bytes: the configured one, lowered to size - distance where otherwise
// no trigger is certain. *never: no checkpoint can be between threshold and end.
uint64_t effective_threshold(const PlanOptions& options, bool* never);

class StreamPlan {
 public:
  explicit StreamPlan(const PlanOptions& options) : options_(options) {}

  // After each event of `stream`: moves the target, and the frontier if the reader overtook it.
  void on_reader(const Stream& stream, const PlanInput& input);
  // Bytes at the frontier have arrived, or were found to be cached: the window may grow.
  void on_filled(const Stream& stream, uint64_t bytes, const PlanInput& input);

  // [frontier, target) is to be read next, in order.
  uint64_t frontier() const { return frontier_; }
  uint64_t target() const { return paused_ ? frontier_ : target_; }
  void advance(uint64_t to) { frontier_ = to > frontier_ ? to : frontier_; }
  uint64_t jumped() const { return jumped_; }  // bytes skipped when the reader overtook

  // The published mode: a pre-cache is read to its last byte without pause.
  bool fixed() const { return options_.size != 0; }

  // The reader went elsewhere before the stream was confirmed: read no further.
  void pause() { paused_ = true; }

 private:
  void aim(const Stream& stream, const PlanInput& input);
  uint64_t full_window(const Stream& stream, const PlanInput& input) const;

  const PlanOptions options_;
  bool begun_ = false, paused_ = false;
  uint64_t frontier_ = 0, target_ = 0;
  uint64_t window_ = 0;      // automatic: bytes ahead of the reader
  uint64_t unit_begin_ = 0;  // fixed: the running pre-cache is [unit_begin_, target_)
  uint64_t jumped_ = 0;
};

}  // namespace sluice::policy
