#include "policy/planner/gaps.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kLeastRead = 512 << 10;  // bytes
constexpr uint64_t kMostSkip = 512 << 20;   // cached bytes in one call
constexpr uint16_t kTaken = kReading | kReady | kFound;

}  // namespace

std::optional<Range> Gaps::next(FileId id, PlannedFile& file, SessionId session, Range range,
                                Cursor* cursor) {
  const uint64_t block = std::max<uint64_t>(queue_.of(file).model.block(), kLeastRead);
  const uint64_t end = std::min((range.end + kPage - 1) / kPage * kPage, file.size);
  uint64_t& at = cursor->frontier;
  at = std::max(at, range.begin / kPage * kPage);
  uint64_t skipped = 0;
  while (at < end && skipped < kMostSkip) {
    const uint64_t begin = at;
    Range piece{at, std::min((at / block + 1) * block, end)};
    for (const auto& some : {file.coverage.read().pieces_in(piece),
                             file.pages.pieces(piece, kTaken), file.unreadable.pieces_in(piece)}) {
      if (some.empty()) continue;
      if (some.front().begin <= at) at = std::max(at, some.front().end);
      piece.end = std::min(piece.end, std::max(some.front().begin, begin));
    }
    if (at != begin) continue;
    const uint64_t cached = cached_at(residency_, id, piece, end, &cursor->probed);
    if (cached == 0) return piece;
    accounts_.count(session, SessionMetric::already_cached_bytes,
                    file.pages.on(PageEvent::kFoundCached, {at, at + cached}).bytes);
    at += cached;
    skipped += cached;
  }
  return std::nullopt;
}

}  // namespace sluice::policy
