#include "policy/streams/coverage.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kMostPieces = 1 << 16;  // remembered
constexpr uint64_t kLeastGap = 256 * kKiB;
constexpr uint64_t kSpan = 32 * kMiB;      // judged, behind the stream's position
constexpr uint64_t kLeastSpan = 4 * kMiB;  // that can end the holes
constexpr uint64_t kStep = 1 * kMiB;       // read between judgements
// Percent of the span in gaps: more is a file with holes, less is one without. Readers that take
// turns leave the part of one of them out for a moment.
constexpr uint64_t kMany = 40, kFew = 25;

}  // namespace

bool Coverage::full() const { return read_.size() >= kMostPieces; }

std::vector<Range> Coverage::add(Range range) {
  std::vector<Range> fresh = not_read(range);
  if (full()) {  // in so many places that nothing is to be concluded
    read_.clear();
    holes_ = false;
  }
  read_.add(range);
  since_ += range.length();
  return fresh;
}

std::vector<Range> Coverage::not_read(Range range) const {
  std::vector<Range> out;
  uint64_t at = range.begin;
  for (const Range& read : read_.pieces_in(range)) {
    if (read.begin > at) out.push_back({at, read.begin});
    at = read.end;
  }
  if (at < range.end) out.push_back({at, range.end});
  return out;
}

void Coverage::judge(Range span, uint64_t jumped, uint64_t worth) {
  const uint64_t gap = std::max(kLeastGap, worth);
  if (jumped <= gap && (!holes_ || since_ < kStep)) return;
  since_ = 0;
  if (span.length() > kSpan) span.begin = span.end - kSpan;
  uint64_t unread = 0;
  for (const Range& part : not_read(span)) {
    if (part.length() > gap) unread += part.length();
  }
  const uint64_t percent = unread * 100 / std::max<uint64_t>(span.length(), 1);
  if (percent > kMany) holes_ = true;
  if (percent < kFew && span.length() >= kLeastSpan) holes_ = false;
}

}  // namespace sluice::policy
