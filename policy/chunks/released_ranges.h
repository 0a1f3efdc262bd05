// Ranges of a log whose samples are not wanted any more. Giving a range back to the file system is
// in the way of reads, and takes about as long whether it is large or small. So nothing is given
// back before its room is needed, since the whole log is cleared at the end of its epoch, and then
// large ranges first, which neighbours make up together. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/chunks/log_index.h"

namespace sluice::policy {

class ReleasedRanges {
 public:
  void add(std::span<const LogRange> ranges);
  // Those to give back now, in ascending order, so that what is left is at most `most` bytes.
  std::vector<LogRange> take(uint64_t most);
  // Something is written to these blocks again: they are not given back.
  void reclaim(LogRange blocks);
  uint64_t bytes() const { return bytes_; }
  void clear() { *this = {}; }

  static constexpr uint64_t kTogether = 4 << 20;  // bytes that are given back at a time, at least
  static constexpr uint64_t kLarge = 256 << 10;

 private:
  std::vector<LogRange> recent_, large_, scattered_;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::policy
