#include "policy/planner/sample_planner.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sluice::optimizer {
namespace {

constexpr uint64_t kLongest = 1 << 20;  // bytes of one read
constexpr double kWindowSeconds = 0.5;
constexpr uint64_t kMinWindow = 16 << 20;
constexpr uint64_t kMaxWindow = 512 << 20;
constexpr unsigned kMostWaiting = 2048;  // records that start to wait in one call

}  // namespace

void SamplePlanner::Outcome::miss(Demand demand) {
  missing.alone_ns += demand.alone_ns;
  missing.link_ns += demand.link_ns;
}

Demand SamplePlanner::demand(const PlannedFile& file, uint32_t session, uint64_t bytes) const {
  const StorageModel& model = queue_.of(file).model;
  return file.by_page.contains(session) ? model.page_demand(bytes) : model.record_demand(bytes);
}

SampleBook::Verdict SamplePlanner::judge_file(uint32_t session, uint32_t file, uint64_t now_ns) {
  if (stage_ == nullptr || !accounts_.prefetches(session)) return SampleBook::Verdict::kNever;
  switch (stage_->judge(file, now_ns)) {
    case StagePlan::Answer::kTake:
      return SampleBook::Verdict::kTake;
    case StagePlan::Answer::kLater:
      return SampleBook::Verdict::kLater;
    default:
      return SampleBook::Verdict::kNever;
  }
}

bool SamplePlanner::is_there(uint32_t file_id, PlannedFile& file, uint32_t session, Range range) {
  if (residency_.cached(file_id, range) < range.length()) {
    if (residency_.known(file_id)) file.pages.on(PageEvent::kNotCached, range);
    return false;
  }
  // It was read together with another record, and now its turn has come.
  if (const uint64_t beside = file.pages.covered(range, kBeside); beside != 0) {
    accounts_.charge(session, file.pages.on(PageEvent::kPrefetched, range, session).bytes);
    accounts_.count(session, SessionMetric::package_used_bytes, beside);
  } else {
    accounts_.count(session, SessionMetric::already_cached_bytes,
                    file.pages.on(PageEvent::kFoundCached, range).bytes);
  }
  return true;
}

SampleBook::Verdict SamplePlanner::judge(uint32_t session, const Extent& extent, uint64_t now_ns) {
  using Verdict = SampleBook::Verdict;
  if (is_whole(extent)) return judge_file(session, whole_file(extent), now_ns);
  const auto at = files_.find(extent.file);
  const bool usable = at != files_.end() && at->second.usable;
  if (!usable && residency_.awaited(extent.file)) return Verdict::kLater;
  if (!usable || !accounts_.prefetches(session) || extent.offset >= at->second.size) {
    return Verdict::kNever;
  }
  PlannedFile& file = at->second;
  const Range range = pages_of(extent, file.size);
  const uint64_t coming = file.pages.covered(range, kReading | kWaiting);
  if (file.pages.ready(session, range) + coming >= range.length()) {
    file.pages.on(PageEvent::kCalled, range);
    return Verdict::kNever;
  }
  if (file.pages.covered(range, kDropping) != 0) return Verdict::kLater;
  if (is_there(extent.file, file, session, range)) return Verdict::kNever;
  // There will never be room for it, and the samples behind it must not wait for that.
  if (range.length() > accounts_.budget(session)) return Verdict::kTooLarge;
  const Mount& mount = queue_.of(file);
  const unsigned most =
      runs_.gathers(extent.file, session, range) ? kMostWaiting : mount.idle(now_ns);
  if (mount.reserved >= most) return Verdict::kLater;
  if (accounts_.room(session, range.length())) return Verdict::kTake;
  accounts_.set_starved(true);
  return Verdict::kLater;
}

// Samples that are taken in one call and lie side by side are merged, up to the length of one read:
// the earliest needed comes first, and its neighbours with it.
std::vector<SamplePlanner::Taken> SamplePlanner::merged(std::vector<Taken> taken) {
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
  return merged;
}

void SamplePlanner::start(const std::vector<Taken>& taken, uint64_t now_ns,
                          std::vector<PlannedRead>* reads) {
  for (const Taken& one : taken) {
    for (uint64_t begin = one.range.begin; begin < one.range.end; begin += kLongest) {
      const Range piece{begin, std::min(begin + kLongest, one.range.end)};
      queue_.start({one.file, one.session, 0, piece}, now_ns, reads);
    }
  }
}

void SamplePlanner::take(const WantedExtent& wanted, uint64_t now_ns, std::vector<Taken>* taken) {
  const uint32_t id = wanted.extent.file;
  PlannedFile& file = files_.at(id);
  Mount& mount = queue_.of(file);
  const Range own = pages_of(wanted.extent, file.size);
  if (runs_.gathers(id, wanted.session, own)) {
    runs_.wait(wanted, own);
    ++mount.reserved;
    return;
  }
  const Range range = runs_.run_around(wanted, own, now_ns);
  file.pages.on(PageEvent::kReadBegun, range);  // so that no other sample reads it again
  file.pages.on(PageEvent::kCalled, own);
  taken->push_back({id, wanted.session, taken->size(), range});
  mount.reserved += static_cast<unsigned>((range.length() - 1) / kLongest + 1);
  accounts_.reserve(wanted.session, range.length());
}

void SamplePlanner::plan(uint64_t now_ns, std::vector<PlannedRead>* reads,
                         std::vector<PlannedFetch>* fetches) {
  if (samples_ == nullptr) return;
  double rate = 0;
  for (const auto& [id, mount] : queue_.mounts()) rate = std::max(rate, mount.model.bandwidth());
  const uint64_t link =
      std::clamp(static_cast<uint64_t>(rate * kWindowSeconds), kMinWindow, kMaxWindow);
  retention_.set_link_window(link);
  runs_.give_up_unwanted();
  const SampleBook::Window window = [&](const SampleBook::Ahead& ahead) {
    const uint64_t most = std::min(link, accounts_.budget(ahead.session) / 2);
    return retention_.window(ahead.dataset, ahead.spread, most, now_ns);
  };
  const SampleBook::Judge asked = [&](uint32_t session, const Extent& extent) {
    return judge(session, extent, now_ns);
  };
  const SampleBook::FileWindow file_window = [&](uint64_t spread) {
    return stage_ != nullptr ? stage_->window(spread, now_ns) : 0;
  };
  if (stage_ != nullptr) stage_->look_again(now_ns, fetches);
  std::vector<Taken> taken;
  while (const auto wanted = samples_->next(window, asked, file_window)) {
    if (is_whole(wanted->extent)) {
      fetches->push_back(
          stage_->start(whole_file(wanted->extent), wanted->session, now_ns, wanted->dataset));
    } else {
      take(*wanted, now_ns, &taken);
    }
  }
  for (auto& [id, mount] : queue_.mounts()) mount.reserved = 0;
  accounts_.end_reservations();
  start(merged(std::move(taken)), now_ns, reads);
  runs_.start_waiting(now_ns, reads);
}

// False: the sample is not counted.
bool SamplePlanner::note_file(uint32_t file, Outcome* outcome) {
  if (stage_ == nullptr || stage_->refused(file)) return false;
  const StagePlan::Has has = stage_->has(file);
  ++outcome->wanted;
  outcome->here += has == StagePlan::Has::kStaged ? 1 : 0;
  outcome->coming += has == StagePlan::Has::kComing ? 1 : 0;
  if (has != StagePlan::Has::kStaged) outcome->miss(stage_->demand(file));
  return true;
}

bool SamplePlanner::note_record(uint32_t session, const Extent& part, bool own_order,
                                Outcome* outcome) {
  const auto at = files_.find(part.file);
  if (at == files_.end()) return false;
  const PlannedFile& file = at->second;
  const Range range = pages_of(part, file.size);
  uint64_t here = file.pages.covered(range, kReady | kFound);
  // Possibly evicted since it was last read, which nothing has reported.
  if (here < range.length() && file.pages.contains(range, kReady | kFound | kRead) &&
      residency_.cached(part.file, range) >= range.length()) {
    here = range.length();
  }
  outcome->wanted += range.length();
  outcome->here += here;
  outcome->coming += file.pages.covered(range, kReading | kWaiting);
  if (own_order) outcome->miss(demand(file, session, range.length() - here));
  return true;
}

void SamplePlanner::on_sample_begin(uint32_t session, std::span<const Extent> parts,
                                    bool own_order) {
  if (parts.empty()) return;
  Outcome outcome;
  for (const Extent& part : parts) {
    const bool counts = is_whole(part) ? note_file(whole_file(part), &outcome)
                                       : note_record(session, part, own_order, &outcome);
    if (!counts) return;
  }
  accounts_.missed(session, outcome.missing);
  accounts_.count(session,
                  outcome.here >= outcome.wanted ? SessionMetric::sample_hits
                  : outcome.coming > 0           ? SessionMetric::sample_late
                                                 : SessionMetric::sample_misses,
                  1);
}

void SamplePlanner::on_sample_end(uint32_t session, std::span<const Extent> parts) {
  for (const Extent& part : parts) {
    if (is_whole(part)) {
      if (stage_ == nullptr) continue;
      const StagePlan::Read read = stage_->on_read(session, whole_file(part));
      accounts_.hit(session, read.saved);
      accounts_.count(session, SessionMetric::precached_used_bytes, read.first_bytes);
      accounts_.count(session, SessionMetric::kept_bytes, read.again_bytes);
      continue;
    }
    const auto at = files_.find(part.file);
    if (at == files_.end()) continue;
    PlannedFile& file = at->second;
    file.last_session = session;
    file.pages.limit_size();
    const auto read = file.pages.on(PageEvent::kSampleRead, pages_of(part, file.size));
    for (const auto& [owner, bytes] : read.ready) accounts_.use(owner, bytes);
    accounts_.count(session, SessionMetric::kept_bytes, read.had(kFound));
    accounts_.hit(session, demand(file, session, read.had(kReady)));
  }
}

}  // namespace sluice::optimizer
