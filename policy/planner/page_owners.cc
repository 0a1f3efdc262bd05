#include "policy/planner/page_owners.h"

#include <algorithm>
#include <iterator>

namespace sluice::policy {

// Afterwards no piece extends across `at`.
void PageOwners::split(uint64_t at) {
  auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return;
  const auto piece = std::prev(next);
  if (piece->second.end <= at) return;
  pieces_.emplace_hint(next, at, piece->second);
  piece->second.end = at;
}

void PageOwners::add(Range range) {
  if (range.length() == 0) return;
  split(range.begin);
  split(range.end);
  uint64_t at = range.begin;
  auto piece = pieces_.lower_bound(range.begin);
  while (at < range.end) {
    if (piece != pieces_.end() && piece->first == at) {
      ++piece->second.owners;
      at = piece->second.end;
      ++piece;
      continue;
    }
    const uint64_t gap_end = piece == pieces_.end() ? range.end : std::min(range.end, piece->first);
    pieces_.emplace_hint(piece, at, Piece{gap_end, 1});
    at = gap_end;
  }
}

void PageOwners::release(Range range) {
  if (range.length() == 0) return;
  split(range.begin);
  split(range.end);
  auto piece = pieces_.lower_bound(range.begin);
  while (piece != pieces_.end() && piece->first < range.end) {
    piece = --piece->second.owners == 0 ? pieces_.erase(piece) : std::next(piece);
  }
}

void PageOwners::unowned(Range range, std::vector<Range>* parts) const {
  uint64_t at = range.begin;
  auto piece = pieces_.upper_bound(range.begin);
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->first < range.end; ++piece) {
    if (piece->second.end <= at) continue;
    if (piece->first > at) parts->push_back({at, piece->first});
    at = piece->second.end;
  }
  if (at < range.end) parts->push_back({at, range.end});
}

}  // namespace sluice::policy
