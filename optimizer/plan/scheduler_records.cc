// The part of the scheduler that bounds what records of big files leave in the page cache. Only for
// jobs that were given a budget of their own, and whose data does not fit it: from others nothing
// is taken that the kernel would have kept for nothing.
#include <algorithm>

#include "optimizer/plan/scheduler.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kMinWindow = 1 << 20;     // bytes
constexpr uint64_t kDepths = 3;              // as in stage_plan.cc
constexpr uint64_t kNearEnough = 16;         // a capacity that is so many times what it is off by
constexpr uint64_t kIdleNs = 1'000'000'000;  // streams that are idle for longer do not count

}  // namespace

// Bytes that may be in memory of the dataset; 0: as many as the kernel likes. Datasets of one job
// share its budget by their sizes.
uint64_t Scheduler::record_limit(uint32_t dataset) const {
  const auto own = record_sets_.find(dataset);
  if (samples_ == nullptr || own == record_sets_.end()) return 0;
  uint64_t limit = 0;
  for (const uint32_t id : samples_->sessions_of(dataset)) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    if (session->second.memory == 0 || !session->second.prefetch) return 0;
    uint64_t all = 0;
    for (const auto& [other, set] : record_sets_) {
      if (samples_->uses(id, other)) all += set.bytes;
    }
    const double share = static_cast<double>(own->second.bytes) / static_cast<double>(all);
    limit = std::max(limit, static_cast<uint64_t>(static_cast<double>(session_budget(id)) *
                                                  std::min(share, 1.0)));
  }
  return own->second.bytes > limit ? limit : 0;
}

bool Scheduler::is_shuffled(uint32_t file) const {
  return std::any_of(record_sets_.begin(), record_sets_.end(), [&](const auto& entry) {
    return entry.second.files.count(file) != 0 && samples_->is_shuffled(entry.first);
  });
}

bool Scheduler::bounds_records(uint32_t session) const {
  const std::vector<uint32_t> tracked = records_.tracked();
  return std::any_of(tracked.begin(), tracked.end(),
                     [&](uint32_t dataset) { return samples_->uses(session, dataset); });
}

// What is read ahead takes its room from what may be kept: no more of it than keeps the storage
// busy while workers read side by side.
uint64_t Scheduler::record_window(uint32_t dataset, uint64_t spread, uint64_t limit,
                                  uint64_t now_ns) {
  const uint64_t mean = records_.mean_bytes(dataset);
  RecordSet& set = record_sets_.at(dataset);
  unsigned depth = 1;
  for (const uint32_t file : set.files) {
    const auto at = files_.find(file);
    if (at != files_.end())
      depth = std::max(depth, mounts_.at(at->second.mount).model.depth(now_ns));
  }
  const uint64_t wanted = std::max(kMinWindow, (kDepths * depth + spread) * mean);
  set.window = std::min(std::max(set.window, wanted), limit / 2);
  return set.window;
}

void Scheduler::on_record_read(uint32_t session, uint32_t dataset, uint64_t index,
                               std::span<const Extent> parts, uint64_t now_ns) {
  std::vector<FilePages> pages;
  RecordSet& set = record_sets_[dataset];
  for (const Extent& part : parts) {
    const auto at = files_.find(part.file);
    if (is_whole(part) || at == files_.end()) continue;
    if (set.files.insert(part.file).second) set.bytes += at->second.size;
    const Range range = pages_of(part, at->second.size);
    if (range.length() != 0) pages.push_back({part.file, range});
  }
  const uint64_t limit = pages.empty() ? 0 : record_limit(dataset);
  if (limit == 0) {
    if (set.files.empty()) record_sets_.erase(dataset);
    if (!pages.empty()) records_.forget(dataset);
    return;
  }
  std::vector<FilePages> freed;
  const uint64_t capacity = limit - record_window(dataset, 0, limit, now_ns);
  const uint64_t before = records_.capacity(dataset);
  if (std::max(before, capacity) - std::min(before, capacity) > capacity / kNearEnough) {
    records_.set_capacity(dataset, samples_->set(dataset)->samples(), capacity, &freed);
  }
  records_.on_read(session, dataset, static_cast<SampleId>(index), std::move(pages), &freed);
  for (const FilePages& piece : freed) {
    const auto at = files_.find(piece.file);
    if (at == files_.end()) continue;
    at->second.spent.add(piece.range);
    any_spent_ = true;
  }
}

void Scheduler::foretell_records() {
  for (const uint32_t dataset : records_.tracked()) {
    records_.foretell(dataset, samples_->upcoming(dataset));
  }
}

void Scheduler::forget_records(uint32_t session) {
  records_.forget_session(session);
  std::erase_if(record_sets_, [&](const auto& entry) {
    if (samples_ == nullptr || samples_->set(entry.first) != nullptr) return false;
    records_.forget(entry.first);
    return true;
  });
}

// What somebody will read, or is reading, stays: it is spent anew when that sample was read. So
// does what somebody without a budget reads.
void Scheduler::drop_spent(uint32_t id, File& file, const IntervalSet& wanted, uint64_t now_ns,
                           std::vector<PlannedDrop>* drops) {
  if (file.spent.empty() && file.stuck.empty()) return;
  for (const Stream& stream : file.tracker.streams()) {
    const auto session = sessions_.find(stream.session);
    const bool recent = now_ns - std::min(now_ns, stream.last_ns) < kIdleNs;
    if (recent && session != sessions_.end() && session->second.memory == 0) file.spent.clear();
  }
  if (now_ns >= next_stuck_ns_) {
    for (const Range& piece : file.stuck.pieces()) {
      drop_unneeded(file, wanted, {id, piece, PlannedDrop::kSpent}, now_ns, drops);
    }
    file.stuck.clear();
  }
  for (const Range& piece : file.spent.pieces()) {
    drop_unneeded(file, wanted, {id, piece, PlannedDrop::kSpent}, now_ns, drops);
  }
  file.spent.clear();
}

void Scheduler::drop_unneeded(const File& file, const IntervalSet& wanted, const PlannedDrop& drop,
                              uint64_t now_ns, std::vector<PlannedDrop>* drops) const {
  if (needed(file, drop.range, kIdleNs, now_ns)) return;
  std::vector<Range> unowned;
  records_.unowned(drop.file, drop.range, &unowned);
  for (const Range& part : unowned) {
    IntervalSet left;
    left.add(part);
    const auto spare = [&](const IntervalSet& needed) {
      for (const Range& piece : needed.pieces_in(part)) left.remove(piece);
    };
    spare(wanted);
    spare(file.flying);
    for (const Range& piece : left.pieces()) drops->push_back({drop.file, piece, drop.why});
  }
}

}  // namespace sluice::optimizer
