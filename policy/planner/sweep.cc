#include "policy/planner/sweep.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr uint64_t kGap = 256 * kKiB;     // a run continues after a gap of this size
constexpr uint64_t kLeastRun = 1 * kMiB;  // shorter ones say nothing
constexpr uint64_t kLongRun = 2 * kMiB;   // one of these far behind is evidence
constexpr uint64_t kFarBehind = 32 * kMiB;
constexpr unsigned kReturns = 8;  // to a run after two others
constexpr size_t kOthers = 2;
constexpr uint16_t kTaken = kReading | kReady | kFound | kBehind;

}  // namespace

Sweep::Run* Sweep::continued(Range range) {
  const auto at = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& run) {
    const bool after = range.begin + kGap >= run.range.end && range.begin <= run.range.end + kGap;
    // A block that is copied from its end to its begin is one run.
    return after || (range.end + kGap >= run.range.begin && range.end <= run.range.begin + kGap);
  });
  if (at == runs_.rend()) return nullptr;
  std::rotate(std::prev(at.base()), at.base(), runs_.end());
  return &runs_.back();
}

// Among the runs that were continued last are two others since this one.
bool Sweep::returned(const Run& run) const {
  const auto at = std::find(recent_.rbegin(), recent_.rend(), run.range.begin);
  if (at == recent_.rend()) return false;
  std::vector<uint64_t> others(recent_.rbegin(), at);
  std::sort(others.begin(), others.end());
  return std::unique(others.begin(), others.end()) - others.begin() >= ptrdiff_t{kOthers};
}

void Sweep::on_read(Range range) {
  Run* run = continued(range);
  if (run == nullptr) {
    if (runs_.size() == kRuns) runs_.erase(runs_.begin());
    runs_.push_back({{range.begin, range.begin}, range.begin + kFarBehind < furthest_});
    run = &runs_.back();
  }
  const uint64_t before = run->range.length();
  if (range.begin < run->range.begin) {
    std::replace(recent_.begin(), recent_.end(), run->range.begin, range.begin);
    run->range.begin = range.begin;
  }
  run->range.end = std::max(run->range.end, range.end);
  const uint64_t length = run->range.length();
  furthest_ = std::max(furthest_, range.end);
  if (length < kLeastRun) return;
  in_runs_ += before < kLeastRun ? length : length - before;
  returns_ += returned(*run) ? 1 : 0;
  evident_ |= returns_ >= kReturns || (run->behind && length >= kLongRun);
  std::rotate(recent_.begin(), recent_.begin() + 1, recent_.end());
  recent_.back() = run->range.begin;
}

std::optional<Range> Sweep::next(const IntervalSet& read, const PageLedger& pages, uint64_t size,
                                 uint64_t block) {
  while (wanted() && cursor_ < size) {
    Range piece{cursor_, std::min((cursor_ / block + 1) * block, size)};
    for (const auto& some : {read.pieces_in(piece), pages.pieces(piece, kTaken)}) {
      if (some.empty()) continue;
      if (some.front().begin <= cursor_) cursor_ = std::max(cursor_, some.front().end);
      piece.end = std::min(piece.end, some.front().begin);
    }
    if (piece.begin == cursor_) return piece;
  }
  return std::nullopt;
}

void Sweep::start(Range piece) {
  swept_ += piece.length();
  cursor_ = piece.end;
}

}  // namespace sluice::policy
