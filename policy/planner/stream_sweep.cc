// Files that are read whole: the part of StreamPlanner that fills what streams leave of a mount.
#include <algorithm>

#include "policy/planner/stream_planner.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kFits = 2;  // times the file must fit the budget: it displaces nothing
constexpr uint64_t kSweepRead = 512 << 10;
// What readers want themselves waits behind all that is in flight: no more than keeps the link
// full.
constexpr uint64_t kLeastReads = 2;
constexpr uint64_t kTrips = 4;  // times a round trip's bytes; with one the rate would not be found

uint64_t round_trip_bytes(const StorageModel& model) {
  return static_cast<uint64_t>(model.bandwidth() * static_cast<double>(model.latency_ns()) / 1e9);
}

}  // namespace

void StreamPlanner::sweep(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  Mount& mount = queue_.mounts().at(mount_id);
  const uint64_t block = std::max<uint64_t>(mount.model.block(), kSweepRead);
  const uint64_t most = std::max(kLeastReads * block, kTrips * round_trip_bytes(mount.model));
  for (auto& [id, file] : files_) {
    if (file.mount != mount_id || !file.usable || !file.sweep.wanted()) continue;
    if (StridePlanner::predicts(file, now_ns) || !StridePlanner::whole(file)) continue;
    const SessionId session = file.last_session;
    if (!accounts_.prefetches(session) || accounts_.budget(session) / kFits < file.size) continue;
    while (mount.idle(now_ns) != 0 && mount.in_flight_bytes < most) {
      const std::optional<Range> piece =
          file.sweep.next(file.coverage.read(), file.pages, file.size, block);
      if (!piece) break;
      if (const uint64_t cached =
              cached_at(residency_, id, *piece, file.size, &file.sweep_probed)) {
        const Range there{piece->begin, piece->begin + cached};
        accounts_.count(session, SessionMetric::already_cached_bytes,
                        file.pages.on(PageEvent::kFoundCached, there).bytes);
        file.sweep.skip(there);
        continue;
      }
      if (!accounts_.room(session, piece->length())) break;
      queue_.start({id, session, kSweepStream, *piece}, now_ns, reads);
      file.sweep.start(*piece);
    }
  }
}

}  // namespace sluice::policy
