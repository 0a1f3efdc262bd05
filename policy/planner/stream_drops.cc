// What streams leave behind: the part of StreamPlanner that drops pages.
#include <algorithm>

#include "policy/planner/stream_planner.h"
#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kDropStep = 4 << 20;
constexpr uint64_t kDropSlack = 1 << 20;           // retained right behind the slowest reader
constexpr uint64_t kOrphanIdleNs = 5'000'000'000;  // a stream idle for longer may lose its pages
constexpr uint64_t kSingleIdleNs = 1'000'000'000;  // likewise for single accesses

// Steps at fixed offsets, so that a range grows to a worthwhile size before it is dropped.
template <typename Visit>
void for_each_step(const std::vector<Range>& pieces, Visit visit) {
  for (const Range& piece : pieces) {
    for (uint64_t begin = piece.begin; begin < piece.end;) {
      const Range step{begin, std::min((begin / kDropStep + 1) * kDropStep, piece.end)};
      begin = step.end;
      visit(step);
    }
  }
}

// The file is being read whole, and was read lately.
bool is_swept(const PlannedFile& file, uint64_t now_ns) {
  const auto& streams = file.tracker.streams();
  return file.sweep.wanted() && std::any_of(streams.begin(), streams.end(), [&](const Stream& one) {
           return now_ns - std::min(now_ns, one.last_ns) <= kOrphanIdleNs;
         });
}

}  // namespace

bool StreamPlanner::needed(const PlannedFile& file, Range range, uint64_t idle_ns,
                           uint64_t now_ns) {
  for (const Stream& stream : file.tracker.streams()) {
    const uint64_t quiet = now_ns - std::min(now_ns, stream.last_ns);
    if (quiet > (stream.confirmed ? idle_ns : kSingleIdleNs)) continue;
    const uint64_t tail = stream.tail(now_ns, idle_ns);
    const auto planned = file.plans.find(stream.id);
    uint64_t end = stream.opened;
    if (planned != file.plans.end()) end = std::max(end, planned->second.plan.target());
    if (range.end + kDropSlack > tail && range.begin < end) return true;
  }
  return false;
}

void StreamPlanner::drop_behind(FileId id, PlannedFile& file, uint64_t now_ns,
                                std::vector<PlannedDrop>* drops) {
  const bool leads = StridePlanner::leads(file);  // then a run behind is all that will be there
  for_each_step(file.pages.pieces(kBehind), [&](Range step) {
    if (step.end % kDropStep != 0 && step.end != file.size && !leads) return;
    if (file.mapped && !file.pages.contains(step, kUnmapped)) return;
    if (needed(file, step, kStreamIdleNs, now_ns)) return;
    drops->push_back({id, {step.begin / kPage * kPage, step.end}});
    file.pages.on(PageEvent::kDropped, step);
  });
}

void StreamPlanner::drop_behind(uint64_t now_ns, std::vector<PlannedDrop>* drops) {
  for (auto& [id, file] : files_) {
    if (file.pages.total(kBehind) != 0) {
      drop_behind(id, file, now_ns, drops);
    } else if (file.pages.total(kUnmapped) != 0 &&
               !accounts_.exceeds(file.size, file.last_session)) {
      file.pages.on(PageEvent::kMapsIgnored, {0, UINT64_MAX});
    }
  }
}

void StreamPlanner::drop_orphans(const std::map<FileId, IntervalSet>& wanted, uint64_t now_ns,
                                 std::vector<PlannedDrop>* drops) {
  for (auto& [id, file] : files_) {
    if (is_swept(file, now_ns)) continue;
    const auto samples = wanted.find(id);
    const IntervalSet expected = StridePlanner::needed(file, kOrphanIdleNs, now_ns);
    for_each_step(file.pages.pieces(kReady), [&, id = id, &file = file](Range step) {
      if (expected.covered(step) != 0 || needed(file, step, kOrphanIdleNs, now_ns)) return;
      if (samples != wanted.end() && samples->second.covered(step) != 0) return;
      drops->push_back({id, step});
      for (const SessionId owner : file.pages.owners()) {
        const uint64_t bytes = file.pages.on(PageEvent::kReleased, step, owner).bytes;
        accounts_.release(owner, bytes);
        accounts_.count(owner, SessionMetric::precached_unused_bytes, bytes);
      }
    });
  }
}

// Another process still maps these pages: they are retried when it unmaps them, too.
void StreamPlanner::on_dropped(PlannedFile& file, const PlannedDrop& drop, uint64_t left) {
  const Range range = drop.range;
  accounts_.count(file.last_session, SessionMetric::dropped_bytes,
                  range.length() - std::min(range.length(), left));
  if (drop.why == PlannedDrop::kBehind && file.mapped && left * 2 > range.length() &&
      accounts_.exceeds(file.size, file.last_session)) {
    file.pages.on(PageEvent::kFallenBehind, range);
  }
}

}  // namespace sluice::policy
