#include "policy/chunks/released_ranges.h"

#include <algorithm>

namespace sluice::policy {

void ReleasedRanges::add(std::span<const LogRange> ranges) {
  for (const LogRange& range : ranges) {
    recent_.push_back(range);
    bytes_ += range.length;
  }
}

namespace {

// Takes `blocks` out of the ranges; returns how many bytes that were.
uint64_t take_out(LogRange blocks, std::vector<LogRange>* ranges) {
  const uint64_t begin = blocks.offset, end = blocks.offset + blocks.length;
  uint64_t taken = 0;
  for (size_t at = ranges->size(); at-- > 0;) {
    const LogRange range = (*ranges)[at];
    const uint64_t from = std::max(begin, range.offset);
    const uint64_t to = std::min(end, range.offset + range.length);
    if (from >= to) continue;
    taken += to - from;
    (*ranges)[at].length = from - range.offset;
    if (to < range.offset + range.length) {
      ranges->push_back({to, range.offset + range.length - to});
    }
  }
  std::erase_if(*ranges, [](const LogRange& range) { return range.length == 0; });
  return taken;
}

}  // namespace

void ReleasedRanges::reclaim(LogRange blocks) {
  for (std::vector<LogRange>* ranges : {&recent_, &large_, &scattered_}) {
    bytes_ -= take_out(blocks, ranges);
  }
}

std::vector<LogRange> ReleasedRanges::take(uint64_t most) {
  std::vector<LogRange> now;
  if (bytes_ <= most) return now;
  join(&recent_, 0);
  for (const LogRange& range : recent_) {
    (range.length >= kLarge ? large_ : scattered_).push_back(range);
  }
  recent_.clear();
  const uint64_t left = most - std::min(most, kTogether);
  for (std::vector<LogRange>* ranges : {&large_, &scattered_}) {
    for (; bytes_ > left && !ranges->empty(); ranges->pop_back()) {
      now.push_back(ranges->back());
      bytes_ -= ranges->back().length;
    }
  }
  std::ranges::sort(now, {}, &LogRange::offset);
  return now;
}

}  // namespace sluice::policy
