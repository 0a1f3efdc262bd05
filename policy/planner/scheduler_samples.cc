// The part of the scheduler that prefetches samples whose order is known, and counts the outcome.
#include <algorithm>
#include <tuple>
#include <utility>

#include "policy/planner/scheduler.h"
#include "protocol/page.h"

namespace sluice::optimizer {
namespace {
constexpr uint64_t kLongest = 1 << 20;  // bytes of one read
constexpr double kWindowSeconds = 0.5;
constexpr uint64_t kMinWindow = 16 << 20;
constexpr uint64_t kMaxWindow = 512 << 20;
constexpr unsigned kMostWaiting = 2048;  // records that start to wait in one call
constexpr size_t kMaxReread = 1 << 16;   // pieces of one file

}  // namespace

Range Scheduler::pages_of(const Extent& extent, uint64_t file_size) {
  const uint64_t end = (extent.offset + extent.length + kPage - 1) / kPage * kPage;
  return {extent.offset / kPage * kPage, std::min(end, file_size)};
}

SampleBook::Verdict Scheduler::judge_file(uint32_t session, uint32_t file, uint64_t now_ns) {
  const auto owner = sessions_.find(session);
  if (stage_ == nullptr || owner == sessions_.end() || !owner->second.prefetch) {
    return SampleBook::Verdict::kNever;
  }
  switch (stage_->judge(file, now_ns)) {
    case StagePlan::Answer::kTake:
      return SampleBook::Verdict::kTake;
    case StagePlan::Answer::kLater:
      return SampleBook::Verdict::kLater;
    default:
      return SampleBook::Verdict::kNever;
  }
}

SampleBook::Verdict Scheduler::judge(uint32_t session, const Extent& extent, uint64_t now_ns) {
  using Verdict = SampleBook::Verdict;
  if (is_whole(extent)) return judge_file(session, whole_file(extent), now_ns);
  const auto at = files_.find(extent.file);
  const auto owner = sessions_.find(session);
  const bool usable = at != files_.end() && at->second.usable;
  if (!usable && residency_->awaited(extent.file)) return Verdict::kLater;
  if (!usable || owner == sessions_.end() || !owner->second.prefetch ||
      extent.offset >= at->second.size) {
    return Verdict::kNever;
  }
  File& file = at->second;
  const Range range = pages_of(extent, file.size);
  const auto mine = file.ready.find(session);
  const uint64_t ready = mine == file.ready.end() ? 0 : mine->second.covered(range);
  if (ready + file.flying.covered(range) + file.waiting.covered(range) >= range.length()) {
    for (const Range& piece : file.flying.pieces_in(range)) file.called.add(piece);
    return Verdict::kNever;
  }
  if (file.dropping.covered(range) != 0) return Verdict::kLater;
  if (residency_->cached(extent.file, range) >= range.length()) {
    if (!take_beside(file, session, range)) {
      count(session, SessionMetric::already_cached_bytes, file.found.add(range));
    }
    return Verdict::kNever;
  }
  if (residency_->known(extent.file)) file.reread.remove(range);
  // There will never be room for it, and the samples behind it must not wait for that.
  if (range.length() > session_budget(session)) return Verdict::kTooLarge;
  const Mount& mount = mounts_.at(file.mount);
  const unsigned most =
      gathers(extent.file, file, session, range)
          ? kMostWaiting
          : mount.model.depth(now_ns) - std::min(mount.model.depth(now_ns), mount.in_flight);
  if (mount.taken >= most) return Verdict::kLater;
  if (room(session, range.length())) return Verdict::kTake;
  starved_ = true;
  return Verdict::kLater;
}

// Samples that are taken in one call and lie side by side are merged, up to the length of one read:
// the earliest needed comes first, and its neighbours with it.
void Scheduler::start_taken(std::vector<Taken> taken, uint64_t now_ns,
                            std::vector<PlannedRead>* reads) {
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) {
    return std::tie(a.session, a.file, a.range.begin) < std::tie(b.session, b.file, b.range.begin);
  });
  std::vector<Taken> merged;
  for (const Taken& next : taken) {
    Taken* last = merged.empty() ? nullptr : &merged.back();
    const bool meets = last != nullptr && last->session == next.session &&
                       last->file == next.file && last->range.end >= next.range.begin;
    if (meets && std::max(last->range.end, next.range.end) - last->range.begin <= kLongest) {
      last->range.end = std::max(last->range.end, next.range.end);
      last->turn = std::min(last->turn, next.turn);
      continue;
    }
    Taken own = next;
    // A page that both samples need is read with the first of them.
    if (meets) own.range.begin = std::min(last->range.end, own.range.end);
    merged.push_back(own);
  }
  std::sort(merged.begin(), merged.end(),
            [](const Taken& a, const Taken& b) { return a.turn < b.turn; });
  for (const Taken& one : merged) {
    const uint64_t mount = files_.at(one.file).mount;
    for (uint64_t begin = one.range.begin; begin < one.range.end; begin += kLongest) {
      const Range piece{begin, std::min(begin + kLongest, one.range.end)};
      start({one.file, 0, one.session, mount, piece, {}, 0}, now_ns, reads);
    }
  }
}

void Scheduler::plan_samples(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  double rate = 0;
  for (const auto& [id, mount] : mounts_) rate = std::max(rate, mount.model.bandwidth());
  const uint64_t link =
      std::clamp(static_cast<uint64_t>(rate * kWindowSeconds), kMinWindow, kMaxWindow);
  link_window_ = link;
  purge_waiting();
  const SampleBook::Window window = [&](const SampleBook::Ahead& ahead) {
    const uint64_t most = std::min(link, session_budget(ahead.session) / 2);
    const uint64_t limit = records_.tracks(ahead.dataset) ? record_limit(ahead.dataset) : 0;
    if (limit == 0) return most;
    return std::min(most, record_window(ahead.dataset, ahead.spread, limit, now_ns));
  };
  const SampleBook::Judge asked = [&](uint32_t session, const Extent& extent) {
    return judge(session, extent, now_ns);
  };
  const SampleBook::FileWindow file_window = [&](uint64_t spread) {
    return stage_ != nullptr ? stage_->window(spread, now_ns) : 0;
  };
  if (stage_ != nullptr) stage_->look_again(now_ns, &fetches_);
  std::vector<Taken> taken;
  while (const auto wanted = samples_->next(window, asked, file_window)) {
    if (is_whole(wanted->extent)) {
      fetches_.push_back(
          stage_->start(whole_file(wanted->extent), wanted->session, now_ns, wanted->dataset));
      continue;
    }
    File& file = files_.at(wanted->extent.file);
    const uint32_t id = wanted->extent.file;
    const Range own = pages_of(wanted->extent, file.size);
    file.called.add(own);
    if (gathers(id, file, wanted->session, own)) {
      wait_for_others(*wanted, file, own);
      ++mounts_.at(file.mount).taken;
      continue;
    }
    const Range range = run_around(*wanted, file, own, now_ns);
    file.flying.add(range);  // so that no other sample reads it again
    taken.push_back({id, wanted->session, taken.size(), range});
    mounts_.at(file.mount).taken += static_cast<unsigned>((range.length() - 1) / kLongest + 1);
    sessions_.at(wanted->session).taken += range.length();
    taken_bytes_ += range.length();
  }
  for (auto& [id, mount] : mounts_) mount.taken = 0;
  for (auto& [id, session] : sessions_) session.taken = 0;
  taken_bytes_ = 0;
  start_taken(std::move(taken), now_ns, reads);
  start_waiting(now_ns, reads);
}

void Scheduler::on_sample_begin(uint32_t session, std::span<const Extent> parts, bool own_order) {
  if (parts.empty()) return;
  uint64_t wanted = 0;
  uint64_t here = 0;
  uint64_t coming = 0;
  Demand missing;
  const auto misses = [&missing](Demand demand) {
    missing.alone_ns += demand.alone_ns;
    missing.link_ns += demand.link_ns;
  };
  for (const Extent& part : parts) {
    if (is_whole(part)) {
      if (stage_ == nullptr || stage_->refused(whole_file(part))) return;
      const StagePlan::Has has = stage_->has(whole_file(part));
      ++wanted;
      here += has == StagePlan::Has::kStaged ? 1 : 0;
      coming += has == StagePlan::Has::kComing ? 1 : 0;
      if (has != StagePlan::Has::kStaged) misses(stage_->demand(whole_file(part)));
      continue;
    }
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
    uint64_t covered = known.covered(range);
    if (covered < range.length() && file.reread.covered(range) != 0) {
      for (const Range& piece : file.reread.pieces_in(range)) known.add(piece);
      // Possibly evicted since, which nothing has reported.
      if (known.contains(range) && residency_->cached(part.file, range) >= range.length()) {
        covered = range.length();
      }
    }
    here += covered;
    coming += file.flying.covered(range) + file.waiting.covered(range);
    if (own_order) misses(record_demand(file, session, range.length() - covered));
  }
  missed(session, missing);
  count(session,
        here >= wanted ? SessionMetric::sample_hits
        : coming > 0   ? SessionMetric::sample_late
                       : SessionMetric::sample_misses,
        1);
}

void Scheduler::on_sample_end(uint32_t session, std::span<const Extent> parts) {
  for (const Extent& part : parts) {
    if (is_whole(part)) {
      if (stage_ == nullptr) continue;
      const StagePlan::Read read = stage_->on_read(session, whole_file(part));
      served(session, read.saved);
      count(session, SessionMetric::precached_used_bytes, read.first_bytes);
      count(session, SessionMetric::kept_bytes, read.again_bytes);
      continue;
    }
    const auto at = files_.find(part.file);
    if (at == files_.end()) continue;
    File& file = at->second;
    file.last_session = session;
    const Range range = pages_of(part, file.size);
    count(session, SessionMetric::kept_bytes, file.found.remove(range));
    // Samples may share pages, or be read twice in an epoch.
    if (file.reread.size() >= kMaxReread) file.reread.clear();
    file.reread.add(range);
    uint64_t used = 0;
    for (auto& [owner, ready] : file.ready) {
      const uint64_t bytes = ready.remove(range);
      const auto at_owner = sessions_.find(owner);
      if (at_owner != sessions_.end()) at_owner->second.outstanding -= bytes;
      count(owner, SessionMetric::precached_used_bytes, bytes);
      outstanding_ -= bytes;
      used += bytes;
    }
    served(session, record_demand(file, session, used));
  }
}

}  // namespace sluice::optimizer
