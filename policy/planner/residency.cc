#include "policy/planner/residency.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kProbe = 4 << 20;  // bytes that one query of residency covers

}  // namespace

uint64_t cached_at(Residency& residency, FileId file, Range piece, uint64_t end, uint64_t* probed) {
  if (piece.end <= *probed) return 0;
  // A query far ahead first: mostly all of the range is cached, or nothing.
  const Range far{piece.begin, std::min(piece.begin + kProbe, std::max(end, piece.end))};
  const uint64_t cached = residency.cached(file, far);
  if (cached >= far.length()) return far.length();
  if (cached == 0) {
    *probed = far.end;
  } else if (far.length() > piece.length() && residency.cached(file, piece) >= piece.length()) {
    return piece.length();
  }
  return 0;
}

}  // namespace sluice::policy
