// What was read of a file, by any of its readers, and whether they leave parts of it out: then the
// bytes between two places that are read are not worth reading. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

class Coverage {
 public:
  // Exactly `range` was read. Returns the parts of it that were not read before.
  std::vector<Range> add(Range range);

  // A stream that has come from span.begin to span.end has passed `jumped` bytes with its last
  // step. A gap of `worth` bytes costs less than a request.
  void judge(Range span, uint64_t jumped, uint64_t worth);
  // Readers leave out much of the file.
  bool holes() const { return holes_; }

  const IntervalSet& read() const { return read_; }
  // The parts of `range` that were not read.
  std::vector<Range> not_read(Range range) const;

 private:
  bool full() const;

  IntervalSet read_;
  uint64_t since_ = 0;  // bytes read since the last judgement, also those that were read before
  bool holes_ = false;
};

}  // namespace sluice::policy
