#include "policy/planner/sequel_planner.h"

#include <algorithm>
#include <utility>

#include "policy/planner/stride_planner.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kHalf = 2;                  // divisor of the file's size
constexpr uint64_t kActiveNs = 2'000'000'000;  // a reader that paused for longer may have stopped
constexpr double kWindowSeconds = 0.3;
constexpr uint64_t kLeastWindow = 16 * kMiB, kMostWindow = 256 * kMiB;
constexpr uint64_t kShare = 4;  // divisor of the budget

}  // namespace

void SequelPlanner::on_step(FileId id, PlannedFile& file, const Stream& stream) {
  if (file.sequel_asked || !stream.confirmed || StridePlanner::leads(file)) return;
  if (file.coverage.read().bytes() < file.size / kHalf && stream.opened < file.size / kHalf) return;
  file.sequel_asked = true;
  begun_.push_back({id, stream.session});
}

std::vector<SequelPlanner::Begun> SequelPlanner::take_begun() { return std::exchange(begun_, {}); }

void SequelPlanner::set(FileId id, FileId next) {
  const auto at = files_.find(id);
  if (at != files_.end() && id != next) at->second.sequel = next;
}

std::optional<SessionId> SequelPlanner::ending(const PlannedFile& file, uint64_t now_ns) const {
  if (StridePlanner::leads(file)) return std::nullopt;
  for (const Stream& stream : file.tracker.streams()) {
    const auto planned = file.plans.find(stream.id);
    if (!stream.confirmed || planned == file.plans.end()) continue;
    if (stream.last_ns + kActiveNs < now_ns || !accounts_.prefetches(stream.session)) continue;
    const bool swept = file.sweep.wanted() && file.sweep.position() >= file.size;
    if (swept || planned->second.plan.frontier() >= file.size) return stream.session;
  }
  return std::nullopt;
}

uint64_t SequelPlanner::window(const PlannedFile& file, SessionId session) const {
  const double rate = queue_.of(file).model.bandwidth();
  const auto wanted = static_cast<uint64_t>(kWindowSeconds * rate);
  return std::min(std::clamp(wanted, kLeastWindow, kMostWindow),
                  accounts_.budget(session) / kShare);
}

void SequelPlanner::plan(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  const Mount& mount = queue_.mounts().at(mount_id);
  for (auto& [id, file] : files_) {
    if (file.mount != mount_id || file.sequel == FileId{}) continue;
    const auto at = files_.find(file.sequel);
    // From its first access on it is read ahead of as any file.
    if (at == files_.end() || !at->second.tracker.streams().empty()) {
      file.sequel = FileId{};
      continue;
    }
    PlannedFile& next = at->second;
    if (!next.usable || next.mount != mount_id) continue;
    const std::optional<SessionId> session = ending(file, now_ns);
    if (!session) continue;
    next.sequel_until_ns = now_ns + kActiveNs;
    const Range wanted{0, std::min(next.size, window(next, *session))};
    while (mount.idle(now_ns) != 0) {
      const auto piece = gaps_.next(at->first, next, *session, wanted, &next.sequel_cursor);
      if (!piece) break;
      if (!accounts_.room(*session, piece->length())) break;
      queue_.start({at->first, *session, kSequelStream, *piece}, now_ns, reads);
    }
  }
}

}  // namespace sluice::policy
