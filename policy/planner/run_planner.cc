#include "policy/planner/run_planner.h"

#include <algorithm>
#include <bit>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kSpared = 8;           // times RequestCost::worth(): the longest run
constexpr uint64_t kTurnNs = 20'000'000;  // during which runs have one length
constexpr uint64_t kTurns = 8;            // in one of so many, runs are shorter
constexpr uint64_t kShort = 4;            // by this factor: lets RequestCost separate its terms

}  // namespace

// The kernel splits a read at pages that are cached: a range that is to be one request must contain
// none.
bool RunPlanner::is_missing(FileId file_id, Range range) {
  if (range.length() == 0) return true;
  const PageLedger& pages = files_.at(file_id).pages;
  if (pages.covered(range, kReading) != 0) return false;
  return residency_.exact(file_id) ? residency_.cached(file_id, range) == 0
                                   : pages.covered(range, kMayBeCached) == 0;
}

void RunPlanner::assume_evicted(PlannedFile& file, Range range) {
  const uint64_t length = queue_.of(file).longest_run();
  file.pages.on(PageEvent::kSeemsEvicted,
                {range.begin / length * length, (range.end + length - 1) / length * length});
}

bool RunPlanner::gathers(FileId file_id, SessionId session, Range own) {
  const Mount& mount = queue_.of(files_.at(file_id));
  return mount.largest_gap(own.length()) >= own.length() && residency_.exact(file_id) &&
         own.length() < mount.longest_run() && !retention_.stays(file_id, session);
}

// The share of the file that the epoch reads anyway is not wasted.
Range RunPlanner::run_around(const WantedExtent& wanted, Range own, uint64_t now_ns) {
  const FileId id = wanted.extent.file.followed();
  const PlannedFile& file = files_.at(id);
  const Mount& mount = queue_.of(file);
  const auto worth = static_cast<double>(mount.model.cost().worth());
  const auto bytes = static_cast<double>(own.length());
  const auto all = static_cast<double>(retention_.bytes_read_by(wanted.session, id));
  const double share = std::min(static_cast<double>(wanted.order) * bytes / all, 1.0);
  if ((1 - share) * bytes >= share * worth || !retention_.stays(id, wanted.session)) return own;
  // Where a query would cause reads, or the record is assumed to be cached, it is read alone.
  if (!residency_.exact(id) &&
      (residency_.known(id) || file.pages.covered(own, kMayBeCached) != 0)) {
    return own;
  }
  uint64_t length = std::bit_floor(mount.longest_run());
  while (length > kPage && static_cast<double>(length) > kSpared * worth) length /= 2;
  if (now_ns / kTurnNs % kTurns == 0) length /= kShort;
  const Range whole{own.begin / length * length,
                    std::min((own.end + length - 1) / length * length, file.size)};
  if (length <= own.length() || !accounts_.room(wanted.session, whole.length())) return own;
  // Extended as far as pages are missing to the left, and to the right.
  Range run = own;
  for (uint64_t step = length / 2; step >= kPage; step /= 2) {
    const uint64_t left = run.begin - std::min(run.begin - whole.begin, step);
    if (is_missing(id, {left, run.begin})) run.begin = left;
    const uint64_t right = std::min(run.end + step, whole.end);
    if (is_missing(id, {run.end, right})) run.end = right;
  }
  return run;
}

void RunPlanner::wait(const WantedExtent& wanted, Range own) {
  PlannedFile& file = files_.at(wanted.extent.file.followed());
  queue_.of(file).waiting.add(wanted, own);
  file.pages.on(PageEvent::kWaits, own);
  accounts_.charge(wanted.session, own.length());
}

void RunPlanner::cancel(const std::vector<WaitingRead>& removed) {
  for (const WaitingRead& read : removed) {
    accounts_.release(read.wanted.session, read.range.length());
    const auto at = files_.find(read.wanted.extent.file.followed());
    if (at != files_.end()) at->second.pages.on(PageEvent::kWaitCancelled, read.range);
  }
}

bool RunPlanner::still_waits(const WantedExtent& wanted) const {
  const Extent& extent = wanted.extent;
  return extent.offset + extent.length <= files_.at(extent.file.followed()).size &&
         samples_->orders().is_ahead(wanted);
}

void RunPlanner::cancel_unwanted() {
  if (seen_orders_ == samples_->orders().changes()) return;
  seen_orders_ = samples_->orders().changes();
  std::vector<WaitingRead> removed;
  for (auto& [id, mount] : queue_.mounts()) {
    mount.waiting.remove_unwanted(
        [this](const WantedExtent& wanted) { return still_waits(wanted); }, &removed);
  }
  cancel(removed);
}

void RunPlanner::remove_file(FileId file) {
  std::vector<WaitingRead> removed;
  for (auto& [id, mount] : queue_.mounts()) mount.waiting.remove_file(file, &removed);
  cancel(removed);
}

void RunPlanner::remove_session(SessionId session) {
  std::vector<WaitingRead> removed;
  for (auto& [id, mount] : queue_.mounts()) mount.waiting.remove_session(session, &removed);
  cancel(removed);
}

void RunPlanner::start_waiting(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  std::vector<WaitingRead> removed;
  const Gatherer::IsWanted is_wanted = [this](const WantedExtent& wanted) {
    return still_waits(wanted);
  };
  for (auto& [id, mount] : queue_.mounts()) {
    const Gatherer::MayBridge may_bridge = [this, &mount = mount](const WaitingRead& read,
                                                                  Range gap) {
      return gap.length() <= mount.largest_gap(read.range.length()) &&
             is_missing(read.wanted.extent.file.followed(), gap);
    };
    while (!mount.waiting.empty() && mount.waiting.bytes() >= mount.gathered &&
           mount.idle(now_ns) != 0) {
      const auto group = mount.waiting.take(mount.longest_run(), may_bridge, is_wanted, &removed);
      if (!group.empty()) start_group(group, now_ns, reads);
    }
  }
  cancel(removed);
}

void RunPlanner::start_group(const std::vector<WaitingRead>& group, uint64_t now_ns,
                             std::vector<PlannedRead>* reads) {
  const WantedExtent& first = group.front().wanted;
  Range run = group.front().range;
  uint64_t bytes = 0;
  for (const WaitingRead& read : group) {
    accounts_.release(first.session, read.range.length());
    run = {std::min(run.begin, read.range.begin), std::max(run.end, read.range.end)};
    bytes += read.range.length();
  }
  const Range own = group.front().range;
  const bool all = accounts_.room(first.session, run.length());
  if (!all) {  // the others wait for their own turn
    run = own;
    bytes = own.length();
    for (size_t i = 1; i < group.size(); ++i) wait(group[i].wanted, group[i].range);
  }
  queue_.start({first.extent.file.followed(), first.session, 0, run, bytes}, now_ns, reads);
}

void RunPlanner::on_arrived(PlannedFile& file, const Request& request, Range got,
                            const std::vector<Range>& needed) {
  file.pages.limit_size();
  IntervalSet neighbours;
  neighbours.add(got);
  uint64_t used = 0;
  for (const Range& piece : needed) {
    const Range arrived{piece.begin, std::min(piece.end, got.end)};
    if (arrived.length() == 0) continue;
    used += neighbours.remove(arrived);
    accounts_.charge(request.session,
                     file.pages.on(PageEvent::kPrefetched, arrived, request.session).bytes);
  }
  if (neighbours.empty()) return;
  accounts_.count(request.session, SessionMetric::packages_read, 1);
  accounts_.count(request.session, SessionMetric::package_bytes, got.length());
  accounts_.count(request.session, SessionMetric::package_used_bytes, used);
  const bool stays = retention_.stays(request.file, request.session);
  const bool bounded = !stays && retention_.is_bounded(request.file);
  for (const Range& piece : neighbours.pieces()) {
    if (stays) file.pages.on(PageEvent::kNeighbourRead, piece);
    if (bounded) retention_.drops().add_between(request.file, piece);
  }
}

}  // namespace sluice::policy
