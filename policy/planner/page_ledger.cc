#include "policy/planner/page_ledger.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace sluice::policy {
namespace {

struct Effect {
  uint16_t unless = 0;   // facts of bytes to which the event does not apply
  uint16_t only_if = 0;  // it applies to bytes with any of these; 0: to all
  uint16_t clears = 0;
  uint16_t sets = 0;
  bool own = false;  // it applies to what is ready for the event's owner alone
};

// The table of transitions, in the order of PageEvent.
constexpr Effect kEffects[] = {
    // unless, only_if, clears, sets
    /* kWanted        */ {0, kReading, 0, kWanted},
    /* kWaits         */ {0, 0, 0, kWaiting | kWanted},
    /* kWaitCancelled */ {0, 0, kWaiting | kWanted, 0},
    /* kReadBegun     */ {0, 0, kWaiting, kReading},
    /* kReadEnded     */ {0, 0, kReading | kWanted, 0},
    /* kPrefetched    */ {kReady, 0, kMayBeCached, kReady},
    /* kNeighbourRead */ {kReady, 0, kMayBeCached, kNeighbour},
    /* kFoundCached   */ {kReady | kFound, 0, kMayBeCached, kFound},
    /* kPassed        */ {0, kReady | kFound, kMayBeCached, 0},
    /* kPassedForGood */ {0, kReady, kMayBeCached, kBehind, true},
    /* kSampleRead    */ {0, 0, kMayBeCached, kRead},
    /* kReleased      */ {0, kReady, kMayBeCached, 0, true},
    /* kNotCached     */ {0, kRead, kMayBeCached, 0},
    /* kSeemsEvicted  */ {kReady, kMayBeCached, kMayBeCached, 0},
    /* kFallenBehind  */ {0, 0, 0, kBehind},
    /* kUnmapped      */ {0, 0, 0, kUnmapped},
    /* kMapsIgnored   */ {0, kUnmapped, kUnmapped, 0},
    /* kDropped       */ {0, 0, kBehind | kUnmapped, 0},
    /* kDropBegun     */ {0, 0, 0, kDropping},
    /* kDropEnded     */ {0, 0, kDropping, 0},
};
static_assert(std::size(kEffects) == static_cast<size_t>(PageEvent::kDropEnded) + 1);

constexpr size_t index_of(PageFact fact) {
  return static_cast<size_t>(std::countr_zero(static_cast<unsigned>(fact)));
}

}  // namespace

uint64_t PageLedger::Changed::had(PageFact fact) const { return before_[index_of(fact)]; }

void PageLedger::account(State state, uint64_t bytes, bool added) {
  for (size_t fact = 0; fact < kPageFacts; ++fact) {
    if ((state.facts >> fact & 1) != 0) totals_[fact] += added ? bytes : -bytes;
  }
  if ((state.facts & kReady) == 0) return;
  uint64_t& ready = ready_[state.owner];
  ready += added ? bytes : -bytes;
  if (ready == 0) ready_.erase(state.owner);
}

// Afterwards no piece extends across `at`.
void PageLedger::split(uint64_t at) {
  const auto next = pieces_.lower_bound(at);
  if (next == pieces_.begin()) return;
  const auto piece = std::prev(next);
  if (piece->second.end <= at) return;
  pieces_.emplace_hint(next, at, piece->second);
  piece->second.end = at;
}

PageLedger::Pieces::iterator PageLedger::put(Pieces::iterator at, Range range, State before,
                                             State after) {
  account(before, range.length(), false);
  account(after, range.length(), true);
  if (before.facts == 0) {  // a gap before `at`
    if (after.facts != 0) pieces_.emplace_hint(at, range.begin, Piece{range.end, after});
    return at;
  }
  if (after.facts == 0) return pieces_.erase(at);
  at->second.state = after;
  return std::next(at);
}

// Joins neighbours in the range, and at its ends, whose states are equal.
void PageLedger::join(Range range) {
  auto at = pieces_.lower_bound(range.begin);
  if (at != pieces_.begin()) --at;
  while (at != pieces_.end()) {
    const auto next = std::next(at);
    if (next == pieces_.end() || next->first > range.end) return;
    if (at->second.end == next->first && at->second.state == next->second.state) {
      at->second.end = next->second.end;
      pieces_.erase(next);
    } else {
      at = next;
    }
  }
}

PageLedger::Changed PageLedger::on(PageEvent event, Range range, SessionId owner) {
  Changed changed;
  if (range.length() == 0) return changed;
  const Effect& effect = kEffects[static_cast<size_t>(event)];
  split(range.begin);
  split(range.end);
  const bool gaps = effect.only_if == 0 && effect.sets != 0;
  auto at = pieces_.lower_bound(range.begin);
  for (uint64_t begin = range.begin; begin < range.end;) {
    const bool gap = at == pieces_.end() || at->first > begin;
    if (gap && !gaps) {
      if (at == pieces_.end()) break;
      begin = at->first;
      continue;
    }
    const uint64_t next = at == pieces_.end() ? range.end : std::min(at->first, range.end);
    const Range piece{begin, gap ? next : at->second.end};
    const State before = gap ? State{} : at->second.state;
    begin = piece.end;
    const bool applies = (before.facts & effect.unless) == 0 &&
                         (effect.only_if == 0 || (before.facts & effect.only_if) != 0) &&
                         (!effect.own || before.owner == owner);
    if (!applies) {
      ++at;
      continue;
    }
    State after = before;
    after.facts = static_cast<uint16_t>((before.facts & ~effect.clears) | effect.sets);
    after.owner = (effect.sets & kReady) != 0   ? owner
                  : (after.facts & kReady) != 0 ? before.owner
                                                : kNoSession;
    changed.bytes += piece.length();
    for (size_t fact = 0; fact < kPageFacts; ++fact) {
      if ((before.facts >> fact & 1) != 0) changed.before_[fact] += piece.length();
    }
    if ((before.facts & kReady) != 0) changed.ready.emplace_back(before.owner, piece.length());
    at = put(at, piece, before, after);
  }
  join(range);
  return changed;
}

void PageLedger::limit_size() {
  if (size() <= scans_above_) return;
  on(PageEvent::kSeemsEvicted, {0, UINT64_MAX});
  scans_above_ = std::max(kMostPieces, size() + kMostPieces / 2);
}

PageLedger::Pieces::const_iterator PageLedger::first_in(uint64_t begin) const {
  auto at = pieces_.upper_bound(begin);
  if (at != pieces_.begin() && std::prev(at)->second.end > begin) --at;
  return at;
}

uint64_t PageLedger::covered(Range range, uint16_t facts) const {
  uint64_t sum = 0;
  for (auto at = first_in(range.begin); at != pieces_.end() && at->first < range.end; ++at) {
    if ((at->second.state.facts & facts) == 0) continue;
    sum += std::min(at->second.end, range.end) - std::max(at->first, range.begin);
  }
  return sum;
}

std::vector<Range> PageLedger::pieces(Range range, uint16_t facts) const {
  std::vector<Range> out;
  for (auto at = first_in(range.begin); at != pieces_.end() && at->first < range.end; ++at) {
    if ((at->second.state.facts & facts) == 0) continue;
    const Range piece{std::max(at->first, range.begin), std::min(at->second.end, range.end)};
    if (!out.empty() && out.back().end == piece.begin) {
      out.back().end = piece.end;
    } else {
      out.push_back(piece);
    }
  }
  return out;
}

uint64_t PageLedger::total(PageFact fact) const { return totals_[index_of(fact)]; }

uint64_t PageLedger::ready(SessionId owner, Range range) const {
  uint64_t sum = 0;
  for (auto at = first_in(range.begin); at != pieces_.end() && at->first < range.end; ++at) {
    const State& state = at->second.state;
    if ((state.facts & kReady) == 0 || state.owner != owner) continue;
    sum += std::min(at->second.end, range.end) - std::max(at->first, range.begin);
  }
  return sum;
}

uint64_t PageLedger::ready(SessionId owner) const {
  const auto at = ready_.find(owner);
  return at == ready_.end() ? 0 : at->second;
}

uint64_t PageLedger::ready_until(SessionId owner, uint64_t from) const {
  for (auto at = first_in(from); at != pieces_.end() && at->first <= from; ++at) {
    const State& state = at->second.state;
    if ((state.facts & kReady) == 0 || state.owner != owner) break;
    from = at->second.end;
  }
  return from;
}

std::vector<SessionId> PageLedger::owners() const {
  std::vector<SessionId> out;
  for (const auto& [owner, bytes] : ready_) out.push_back(owner);
  return out;
}

}  // namespace sluice::policy
