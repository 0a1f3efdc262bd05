#include "policy/streams/observer.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kFastNs = kMillisecond;              // so that no start of reading is missed
constexpr uint64_t kLeadNs = 10 * kMillisecond;         // if the prefetch is well ahead
constexpr uint64_t kIdleNs = 50 * kMillisecond;         // if nothing happens
constexpr uint64_t kPatienceNs = 2'000 * kMillisecond;  // of fast scans of a fresh mapping
constexpr uint64_t kShare = 200;         // at most 1/200 of the time for scans of the whole mapping
constexpr uint64_t kNearShare = 40;      // and 1/40 for scans near the readers
constexpr size_t kMaxGaps = 32;          // gaps that are scanned one by one
constexpr uint64_t kBehind = 256 << 10;  // bytes scanned before the position
constexpr uint64_t kLeastAhead = 4 * kMiB;  // and after it

}  // namespace

Observer::Observer(uint64_t address, uint64_t offset, uint64_t length, uint64_t reader,
                   SessionId session, uint64_t now_ns)
    : address_(address),
      offset_(offset),
      length_(length),
      reader_(reader),
      session_(session),
      next_ns_(now_ns),
      next_whole_ns_(now_ns),
      active_ns_(now_ns) {}

bool Observer::scan(PageTable& table, Range range, uint64_t now_ns, std::vector<Access>* found) {
  range.begin = std::max(range.begin / kPage * kPage, offset_);
  range.end = std::min((range.end + kPage - 1) / kPage * kPage, offset_ + length_);
  if (range.length() == 0) return true;
  // Pages that are known to be mapped are not walked again, unless that takes too many calls.
  std::vector<Range> gaps;
  uint64_t at_gap = range.begin;
  for (const Range& old : known_.pieces_in(range)) {
    if (old.begin > at_gap) gaps.push_back({at_gap, old.begin});
    at_gap = old.end;
  }
  if (at_gap < range.end) gaps.push_back({at_gap, range.end});
  if (gaps.size() > kMaxGaps) gaps.assign(1, range);
  std::vector<Range> mapped;
  for (const Range& gap : gaps) {
    if (!table.present(address_ + (gap.begin - offset_), address_ + (gap.end - offset_), &mapped)) {
      return false;
    }
  }
  for (const Range& piece : mapped) {
    const Range at{piece.begin - address_ + offset_, piece.end - address_ + offset_};
    IntervalSet fresh;
    fresh.add(at);
    for (const Range& old : known_.pieces_in(at)) fresh.remove(old);
    for (const Range& news : fresh.pieces()) {
      found->push_back({Access::Kind::kSeen, news.begin, news.length(), now_ns, reader_, session_});
    }
    known_.add(at);
  }
  return true;
}

uint64_t Observer::interval(std::span<const ObservedStream> streams, uint64_t now_ns) const {
  const uint64_t quiet = now_ns - std::min(now_ns, active_ns_);
  if (quiet > kPatienceNs) return std::clamp(quiet / 200, kFastNs, kIdleNs);
  uint64_t interval = kLeadNs;
  bool any = false;
  for (const ObservedStream& stream : streams) {
    any |= stream.confirmed;
    if (!stream.confirmed || stream.rate <= 0) continue;
    const uint64_t lead = stream.frontier - std::min(stream.frontier, stream.position);
    interval = std::min(interval,
                        static_cast<uint64_t>(static_cast<double>(lead) / stream.rate * 1e9 / 8));
  }
  return any ? std::max(interval, kFastNs) : kFastNs;
}

bool Observer::poll(PageTable& table, std::span<const ObservedStream> streams, uint64_t now_ns,
                    std::vector<Access>* found) {
  const size_t before = found->size();
  ahead_ = false;
  whole_ = now_ns >= next_whole_ns_;
  if (whole_) {
    if (!scan(table, {offset_, offset_ + length_}, now_ns, found)) return false;
  } else {
    uint64_t furthest = offset_;
    for (const ObservedStream& stream : streams) {
      furthest = std::max(furthest, stream.position);
      if (!stream.confirmed && stream.position != 0) continue;
      // As far as the reader can have come since the last scan, with a margin.
      const auto step =
          static_cast<uint64_t>(4 * stream.rate * static_cast<double>(interval_ns_) / 1e9);
      const uint64_t from = stream.position - std::min(stream.position, kBehind);
      if (!scan(table, {from, stream.position + std::max(kLeastAhead, step)}, now_ns, found)) {
        return false;
      }
    }
    // Nothing near them: a reader may have gone on far ahead, where nothing is mapped yet.
    ahead_ = found->size() == before && now_ns >= next_ahead_ns_;
    if (ahead_ && !scan(table, {furthest, offset_ + length_}, now_ns, found)) return false;
  }
  std::sort(found->begin() + static_cast<ptrdiff_t>(before), found->end(),
            [](const Access& a, const Access& b) { return a.offset < b.offset; });
  if (found->size() > before) active_ns_ = now_ns;
  interval_ns_ = interval(streams, now_ns);
  next_ns_ = now_ns + interval_ns_;
  return true;
}

void Observer::spent(uint64_t cost_ns, uint64_t now_ns) {
  // After a single slow scan (this process was not scheduled) scanning must not pause for long.
  next_ns_ = std::max(next_ns_, now_ns + std::min(cost_ns * kNearShare, 2 * interval_ns_));
  if (ahead_ || whole_) next_ahead_ns_ = now_ns + cost_ns * kNearShare;
  if (whole_) next_whole_ns_ = now_ns + std::max(cost_ns * kShare, kFastNs);
}

}  // namespace sluice::policy
