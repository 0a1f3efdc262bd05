// The part of the scheduler that fetches samples whose order is known, and counts how it went.
#include <algorithm>

#include "optimizer/plan/scheduler.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kLongest = 1 << 20;  // bytes of one read
constexpr double kWindowSeconds = 0.5;
constexpr uint64_t kMinWindow = 16 << 20;
constexpr uint64_t kMaxWindow = 512 << 20;

Range pages_of(const Extent& extent, uint64_t file_size) {
  const uint64_t end = (extent.offset + extent.length + kPage - 1) / kPage * kPage;
  return {extent.offset / kPage * kPage, std::min(end, file_size)};
}

}  // namespace

SampleBook::Verdict Scheduler::judge(uint32_t session, const Extent& extent, uint64_t now_ns) {
  using Verdict = SampleBook::Verdict;
  const auto at = files_.find(extent.file);
  const auto owner = sessions_.find(session);
  if (at == files_.end() || !at->second.usable || owner == sessions_.end() ||
      !owner->second.prefetch || extent.offset >= at->second.size) {
    return Verdict::kNever;
  }
  File& file = at->second;
  const Range range = pages_of(extent, file.size);
  const auto mine = file.ready.find(session);
  const uint64_t ready = mine == file.ready.end() ? 0 : mine->second.covered(range);
  if (ready + file.flying.covered(range) >= range.length()) return Verdict::kNever;
  if (residency_->cached(extent.file, range) >= range.length()) {
    count(session, SessionMetric::already_cached_bytes, file.found.add(range));
    return Verdict::kNever;
  }
  const Mount& mount = mounts_.at(file.mount);
  if (mount.in_flight >= mount.model.depth(now_ns)) return Verdict::kLater;
  if (room(session, range.length())) return Verdict::kTake;
  starved_ = true;
  return Verdict::kLater;
}

void Scheduler::plan_samples(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  double rate = 0;
  for (const auto& [id, mount] : mounts_) rate = std::max(rate, mount.model.bandwidth());
  uint64_t window =
      std::clamp(static_cast<uint64_t>(rate * kWindowSeconds), kMinWindow, kMaxWindow);
  window = std::min(window, budget_ / 2);
  const SampleBook::Judge asked = [&](uint32_t session, const Extent& extent) {
    return judge(session, extent, now_ns);
  };
  while (const auto wanted = samples_->next(window, asked)) {
    const File& file = files_.at(wanted->extent.file);
    const Range whole = pages_of(wanted->extent, file.size);
    for (uint64_t begin = whole.begin; begin < whole.end; begin += kLongest) {
      const Range piece{begin, std::min(begin + kLongest, whole.end)};
      start({wanted->extent.file, 0, wanted->session, file.mount, piece, {}}, now_ns, reads);
    }
  }
}

void Scheduler::on_sample_begin(uint32_t session, std::span<const Extent> parts) {
  if (parts.empty()) return;
  uint64_t wanted = 0;
  uint64_t here = 0;
  uint64_t coming = 0;
  for (const Extent& part : parts) {
    const auto at = files_.find(part.file);
    if (at == files_.end()) return;
    const File& file = at->second;
    const Range range = pages_of(part, file.size);
    IntervalSet known;
    for (const auto& [owner, ready] : file.ready) {
      for (const Range& piece : ready.pieces_in(range)) known.add(piece);
    }
    for (const Range& piece : file.found.pieces_in(range)) known.add(piece);
    wanted += range.length();
    here += known.covered(range);
    coming += file.flying.covered(range);
  }
  count(session,
        here >= wanted ? SessionMetric::sample_hits
        : coming > 0   ? SessionMetric::sample_late
                       : SessionMetric::sample_misses,
        1);
}

void Scheduler::on_sample_end(uint32_t session, std::span<const Extent> parts) {
  for (const Extent& part : parts) {
    const auto at = files_.find(part.file);
    if (at == files_.end()) continue;
    File& file = at->second;
    file.last_session = session;
    const Range range = pages_of(part, file.size);
    file.found.remove(range);
    uint64_t used = 0;
    for (auto& [owner, ready] : file.ready) {
      const uint64_t bytes = ready.remove(range);
      const auto at_owner = sessions_.find(owner);
      if (at_owner != sessions_.end()) at_owner->second.outstanding -= bytes;
      count(owner, SessionMetric::precached_used_bytes, bytes);
      outstanding_ -= bytes;
      used += bytes;
    }
    count(session, SessionMetric::stall_avoided_ns, mounts_.at(file.mount).model.demand_ns(used));
  }
}

}  // namespace sluice::optimizer
