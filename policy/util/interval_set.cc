#include "policy/util/interval_set.h"

#include <algorithm>

namespace sluice::policy {

uint64_t IntervalSet::add(Range range) {
  if (range.length() == 0) return 0;
  const uint64_t fresh = range.length() - covered(range);
  auto at = pieces_.upper_bound(range.begin);
  if (at != pieces_.begin() && std::prev(at)->second >= range.begin) --at;
  while (at != pieces_.end() && at->first <= range.end) {
    range.begin = std::min(range.begin, at->first);
    range.end = std::max(range.end, at->second);
    at = pieces_.erase(at);
  }
  pieces_.emplace(range.begin, range.end);
  bytes_ += fresh;
  return fresh;
}

uint64_t IntervalSet::remove(Range range, std::vector<Range>* removed) {
  uint64_t bytes = 0;
  if (range.length() == 0) return 0;
  auto at = pieces_.upper_bound(range.begin);
  if (at != pieces_.begin() && std::prev(at)->second > range.begin) --at;
  while (at != pieces_.end() && at->first < range.end) {
    const Range piece{at->first, at->second};
    const Range cut{std::max(piece.begin, range.begin), std::min(piece.end, range.end)};
    at = pieces_.erase(at);
    if (piece.begin < cut.begin) pieces_.emplace(piece.begin, cut.begin);
    if (cut.end < piece.end) at = std::next(pieces_.emplace(cut.end, piece.end).first);
    bytes += cut.length();
    if (removed != nullptr) removed->push_back(cut);
  }
  bytes_ -= bytes;
  return bytes;
}

std::vector<Range> IntervalSet::pieces_in(Range range) const {
  std::vector<Range> out;
  if (range.length() == 0) return out;
  auto at = pieces_.upper_bound(range.begin);
  if (at != pieces_.begin()) --at;
  for (; at != pieces_.end() && at->first < range.end; ++at) {
    const Range cut{std::max(at->first, range.begin), std::min(at->second, range.end)};
    if (cut.length() > 0) out.push_back(cut);
  }
  return out;
}

uint64_t IntervalSet::covered(Range range) const {
  uint64_t sum = 0;
  for (const Range& piece : pieces_in(range)) sum += piece.length();
  return sum;
}

uint64_t IntervalSet::first_gap(uint64_t from) const {
  const auto at = pieces_.upper_bound(from);
  if (at == pieces_.begin()) return from;
  return std::max(from, std::prev(at)->second);
}

void IntervalSet::clear() {
  pieces_.clear();
  bytes_ = 0;
}

std::vector<Range> IntervalSet::pieces() const {
  std::vector<Range> out;
  out.reserve(pieces_.size());
  for (const auto& [begin, end] : pieces_) out.push_back({begin, end});
  return out;
}

}  // namespace sluice::policy
