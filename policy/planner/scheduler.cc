#include "policy/planner/scheduler.h"

#include <algorithm>
#include <map>

namespace sluice::policy {
namespace {

constexpr uint32_t kDefaultBlock = 128 << 10;
constexpr unsigned kDefaultDepth = 32;
constexpr uint64_t kInstantNs = 150'000;     // no network mount answers as fast as this
constexpr uint64_t kInstantRate = 8;         // bytes for each further nanosecond that is allowed
constexpr uint64_t kOrphansNs = 50'000'000;  // between searches for pages without a reader

}  // namespace

Scheduler::Scheduler(Residency* residency, SampleBook* samples, StagePlan* stage)
    : residency_(*residency),
      samples_(samples),
      queue_(&accounts_, &files_),
      streams_(residency, &accounts_, &queue_, &files_),
      retention_(samples, &accounts_, &queue_, &files_),
      runs_(residency, samples, &accounts_, &queue_, &files_, &retention_),
      records_(residency, &accounts_, &queue_, &files_, samples, &runs_),
      store_(samples, stage, &records_, &accounts_, &retention_),
      sample_planner_(samples, stage, &store_, &records_, &accounts_, &queue_, &retention_,
                      &runs_) {}

PlannedFile* Scheduler::find(FileId file) {
  const auto at = files_.find(file);
  return at == files_.end() ? nullptr : &at->second;
}

void Scheduler::add_session(SessionId session, const PlanOptions& options, bool prefetch,
                            uint64_t memory, std::optional<PolicyKind> policy) {
  accounts_.add(session, options, prefetch, memory, policy);
  retention_.on_change();
}

void Scheduler::settle_session(SessionId session, uint64_t now_ns) {
  for (auto& [id, file] : files_) {
    streams_.settle(file, session, now_ns);
    release_ready(file, session);
  }
}

void Scheduler::remove_session(SessionId session, uint64_t now_ns) {
  settle_session(session, now_ns);
  runs_.remove_session(session);
  accounts_.remove(session);
}

SessionView Scheduler::view(SessionId session, uint64_t now_ns) const {
  SessionView view;
  view.budget = accounts_.budget(session);
  const Accounts::Session* account = accounts_.find(session);
  if (account == nullptr) return view;
  view.passed = account->passed;
  view.passed_ready = account->passed_ready;
  view.passes = account->passes;
  view.outstanding = account->outstanding;
  view.in_flight = queue_.requests_of(session);
  for (const auto& [id, file] : files_) {
    const uint64_t ready = file.pages.ready(session);
    if (ready == 0 && file.last_session != session) continue;
    view.ahead += ready + file.pages.total(kFound);
    const StorageModel& model = queue_.of(file).model;
    view.depth = std::max<uint64_t>(view.depth, model.depth(now_ns));
    view.bandwidth = std::max(view.bandwidth, model.bandwidth());
  }
  return view;
}

void Scheduler::add_file(FileId file, uint64_t size, uint64_t mount) {
  queue_.add(mount, kDefaultBlock, kDefaultDepth);
  PlannedFile& entry = files_[file];
  entry.size = size;
  entry.mount = mount;
}

void Scheduler::resize_file(FileId id, uint64_t size) {
  PlannedFile* file = find(id);
  if (file == nullptr) return;
  file->size = size;
  retention_.on_change();
}

void Scheduler::file_usable(FileId id, bool usable) {
  PlannedFile* file = find(id);
  if (file == nullptr) return;
  file->usable = usable;
  if (!usable) runs_.remove_file(id);
}

void Scheduler::remove_file(FileId id) {
  PlannedFile* file = find(id);
  if (file == nullptr) return;
  for (const SessionId owner : file->pages.owners()) release_ready(*file, owner);
  runs_.remove_file(id);
  if (samples_ != nullptr) samples_->groups().remove_file(id);
  // What is in flight still ends in on_done(), which finds its request without its file.
  files_.erase(id);
  retention_.remove_file(id);
  streams_.remove_file(id);
}

void Scheduler::release_ready(PlannedFile& file, SessionId session) {
  const uint64_t bytes = file.pages.on(PageEvent::kReleased, {0, UINT64_MAX}, session).bytes;
  accounts_.release(session, bytes);
  accounts_.count(session, SessionMetric::precached_unused_bytes, bytes);
}

bool Scheduler::plan(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  streams_.plan(now_ns, reads);
  return sample_planner_.plan(now_ns, reads, &fetches_);
}

void Scheduler::on_staged(SessionId session, uint64_t bytes, bool packed) {
  accounts_.count(session, SessionMetric::precached_bytes, bytes);
  accounts_.count(session, SessionMetric::packed_files, packed ? 1 : 0);
  accounts_.count(session, SessionMetric::packed_bytes, packed ? bytes : 0);
}

bool Scheduler::note_instant(PlannedFile& file, const Request& request, Range got, bool instant) {
  if (residency_.known(request.file)) return false;
  file.instant = instant ? std::min(file.instant + 1, kInstantRun) : 0;
  if (!instant) {
    const bool assumed = file.pages.covered(request.range, kMayBeCached) != 0;
    if (request.stream == 0 && assumed) runs_.assume_evicted(file, request.range);
    return false;
  }
  const auto found = file.pages.on(PageEvent::kFoundCached, got);
  accounts_.count(request.session, SessionMetric::package_used_bytes, found.had(kNeighbour));
  accounts_.count(request.session, SessionMetric::already_cached_bytes, found.bytes);
  streams_.on_filled(file, request, got.length());
  return true;
}

void Scheduler::on_done(uint64_t token, uint64_t bytes, int error, uint64_t now_ns) {
  const std::optional<Request> ended = queue_.end(token);
  if (!ended) return;
  const Request& request = *ended;
  const uint64_t took = now_ns - std::min(now_ns, request.sample.issued_ns);
  const bool instant = took < kInstantNs + bytes / kInstantRate && !residency_.known(request.file);
  // A read answered by the page cache says nothing about the storage; a stream's counts
  // nevertheless, since streams learn their pace from it.
  if (error == 0 && (!instant || request.stream != 0)) {
    queue_.mounts()
        .at(request.mount)
        .model.on_done(request.sample, static_cast<uint32_t>(bytes), now_ns);
  }
  PlannedFile* file = find(request.file);
  if (file == nullptr) return;
  const std::vector<Range> needed = file->pages.pieces(request.range, kWanted);
  file->pages.on(PageEvent::kReadEnded, request.range);
  streams_.on_ended(*file, request);
  if (error != 0) accounts_.count(request.session, SessionMetric::read_errors, 1);
  if ((error != 0 || bytes == 0) && request.stream >= kSequelStream) {
    file->unreadable.add(request.range);  // or it would be read again at once
  }
  if (accounts_.find(request.session) == nullptr || bytes == 0) return;
  const Range got{request.range.begin, request.range.begin + bytes};
  if (note_instant(*file, request, got, instant)) return;
  accounts_.count(request.session, SessionMetric::precached_bytes, bytes);
  if (request.stream != 0) {
    streams_.on_arrived(*file, request, got);
  } else {
    runs_.on_arrived(*file, request, got, needed);
  }
}

void Scheduler::drops(uint64_t now_ns, std::vector<PlannedDrop>* drops) {
  streams_.drop_behind(now_ns, drops);
  // Visiting all orders takes time, and memory that is short mostly stays short.
  if (accounts_.starved() && now_ns >= next_orphans_ns_) {
    uint64_t visited = 0;
    std::map<FileId, IntervalSet> wanted = wanted_by_samples(samples_, &visited);
    if (samples_ != nullptr) {
      samples_->groups().for_each_taken([&wanted](const Extent& record) {
        wanted[record.file.followed()].add(pages_of(record, UINT64_MAX));
      });
    }
    streams_.drop_orphans(wanted, now_ns, drops);
    accounts_.set_starved(false);
    next_orphans_ns_ = now_ns + kOrphansNs;
  }
  retention_.drops().drops(now_ns, drops);
}

void Scheduler::on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns) {
  if (drop.why == PlannedDrop::kSpent) retention_.drops().on_dropped(drop, left, now_ns);
  if (PlannedFile* file = find(drop.file)) streams_.on_dropped(*file, drop, left);
}

void Scheduler::on_lost(FileId id, uint64_t lost) {
  const PlannedFile* file = find(id);
  if (file == nullptr) return;
  accounts_.count(file->last_session, SessionMetric::precache_lost_bytes, lost);
}

}  // namespace sluice::policy
