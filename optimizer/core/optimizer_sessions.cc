// Processes of sessions, and the events of their rings.
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/ancestors.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {
namespace {

using protocol::EventKind;

// From the end of the last process to that of the session: a child that was forked just before
// and has not claimed its slot yet must find the session alive.
constexpr uint64_t kGraceNs = 200 * kMillisecond;

// From a worker up to the process that owns the order: a fork server and a shell may lie between.
constexpr unsigned kMostAncestors = 4;

constexpr const char* kEventNames[] = {"none",   "trip",   "read",  "mapped", "unmapped", "zapped",
                                       "random", "closed", "begin", "end",    "part"};

Access access_of(const Session& session, const TakenEvent& event, uint64_t now) {
  Access access;
  access.kind = event.data.kind == EventKind::kTrip ? Access::Kind::kTrip : Access::Kind::kRead;
  access.offset = event.data.offset;
  access.length = event.data.length;
  access.time_ns = std::min(event.data.time_ns, now);
  access.reader = static_cast<uint64_t>(event.pid) << 32 | event.data.tid;
  access.session = session.id;
  access.page = (event.data.flags & protocol::kFlagPage) != 0;
  access.worker = event.pid != session.peer_pid;
  access.waited_ns = session.waited_ns();
  return access;
}

}  // namespace

void Optimizer::on_slot_taken(uint32_t id, uint32_t slot, uint32_t pid) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  Session& session = *at->second;
  Process& process = session.processes[slot];
  process.pid = pid;
  const std::vector<uint32_t> parent = ancestors_of(pid, 1);
  process.parent = parent.empty() ? 0 : parent.front();
  session.had_slot = true;
  session.empty_since_ns = 0;
  find_process(session, slot);
}

// If no descriptor is left, the process is assumed alive and looked up again by tick().
void Optimizer::find_process(Session& session, uint32_t slot) {
  Process& process = session.processes[slot];
  int pidfd = -1;
  const Life life = look_for(process.pid, &pidfd);
  process.pidfd.reset(pidfd);
  process.unwatched = life == Life::kUnknown;
  if (process.pidfd) {
    watch(process.pidfd.get(), Tag::kProcess, static_cast<uint64_t>(session.id) << 16 | slot,
          EPOLLIN, true);
  } else if (life == Life::kEnded && session.reader != nullptr) {
    session.reader->free_slot(slot, process.pid);
  }
}

void Optimizer::find_unwatched() {
  for (const auto& [id, session] : sessions_) {
    for (uint32_t slot = 0; slot < session->processes.size(); ++slot) {
      if (session->processes[slot].unwatched) find_process(*session, slot);
    }
  }
}

// A spawned worker reads in the order of the process that started it.
void Optimizer::find_parent(const Session& session) {
  for (const uint32_t ancestor : ancestors_of(session.peer_pid, kMostAncestors)) {
    // The newest first: a process that began as a child in one job may have become another job.
    for (auto other = sessions_.rbegin(); other != sessions_.rend(); ++other) {
      if (other->first == session.id || !other->second->has_process(ancestor)) continue;
      samples_.orders().set_parent(session.id, other->first);
      return;
    }
  }
}

void Optimizer::on_process_end(uint32_t id, uint32_t slot) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end() || slot >= protocol::kSlots) return;
  Process& process = at->second->processes[slot];
  process.pidfd.reset();
  if (at->second->reader != nullptr) at->second->reader->free_slot(slot, process.pid);
}

void Optimizer::on_slot_freed(uint32_t id, uint32_t slot, uint32_t pid,
                              const ClientMetrics& metrics) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  Session& session = *at->second;
  for (size_t i = 0; i < metrics.size(); ++i) {
    session.freed_metrics[i] += metrics[i];
    session.memory.get()->header.freed[i].store(session.freed_metrics[i],
                                                std::memory_order_relaxed);
  }
  session.processes[slot] = {};
  session.faults.erase(pid);
  std::erase_if(session.mappings, [slot](const Mapping& mapping) { return mapping.slot == slot; });
  session.observed.remove_if(
      [slot](const ObservedMapping& mapping) { return mapping.slot == slot; });
  scheduler_.streams().forget_process(pid);
  samples_.forget_process(pid);
  recordings_.forget_process(pid);
  importance_.forget_process(id, pid);
  if (session.selects) choose_policy();  // the dataset may no longer be shared by jobs
  if (session.live() == 0) session.empty_since_ns = now_ns();
}

void Optimizer::on_events(uint32_t id, const std::vector<TakenEvent>& events) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  finish_reads();  // or data that has arrived would count as late
  const uint64_t now = now_ns();
  guarded(id, [&] {
    for (const TakenEvent& event : events) on_event(*at->second, event, now);
  });
  // If locations were not learned for lack of room, releases other datasets before the next batch.
  relieve();
}

void Optimizer::on_event(Session& session, const TakenEvent& event, uint64_t now) {
  ++session.events_seen;
  if (event.data.kind >= EventKind::kSampleBegin) {
    if (!event_is_sane(event.data, 0) || !on_sample_event(session, event)) ++session.events_bad;
    return;
  }
  const FileEntry* file =
      session.files.count(event.data.file) != 0 ? files_.find(event.data.file) : nullptr;
  if (file == nullptr || !event_is_sane(event.data, file->size)) {
    ++session.events_bad;
    return;
  }
  const uint32_t id = event.data.file;
  if (logs(Level::kDebug))
    trace(kEventNames[static_cast<size_t>(event.data.kind)], session.id, event);
  switch (event.data.kind) {
    case EventKind::kTrip:
    case EventKind::kRead:
      // While samples are read in an order of their own, a read does not predict the next one.
      if ((event.data.flags & protocol::kFlagSample) != 0 &&
          samples_.reads_at_random(static_cast<uint64_t>(event.pid) << 32 | event.data.tid)) {
        break;
      }
      scheduler_.streams().on_access(id, access_of(session, event, now));
      note_pass(session, now);
      break;
    case EventKind::kMapped:
      on_mapped(session, event, now);
      break;
    case EventKind::kUnmapped:
      forget_mapping(session, event.slot, event.data.address);
      break;
    case EventKind::kZapped:
      scheduler_.streams().on_unmapped(id,
                                       {event.data.offset, event.data.offset + event.data.length});
      for (ObservedMapping& mapping : session.observed) {
        if (mapping.slot != event.slot || mapping.file != id) continue;
        mapping.observer.forget({event.data.offset, event.data.offset + event.data.length});
      }
      break;
    case EventKind::kRandom:
      scheduler_.streams().on_random(id);
      break;
    default:
      break;
  }
}

// Runs `then` once all events that jobs wrote before this call have been handled.
void Optimizer::after_events(std::function<void()> then) {
  const auto left = std::make_shared<std::atomic<size_t>>(sessions_.size() + 1);
  const std::function<void()> one_less = [left, mailbox = mailbox_, then = std::move(then)] {
    if (left->fetch_sub(1) == 1) mailbox->post(then);
  };
  for (const auto& [id, session] : sessions_) session->reader->after_events(one_less);
  one_less();
}

void Optimizer::end_session(uint32_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;
  at->second->reader.reset();  // drains the rings
  run_mailbox();
  scheduler_.settle_session(id, now_ns());
  publish_metrics();  // before the answer to kBye: the job prints them
  add_point(*at->second, now_ns());
  const std::unique_ptr<Session> session = std::move(at->second);
  session->memory.get()->header.closed.store(1, std::memory_order_release);
  sessions_.erase(at);
  recordings_.leave(id);
  places_.leave(id);
  files_.leave(id, [this](uint64_t token) { engine_->cancel(token); });
  scheduler_.remove_session(id, now_ns());
  for (const uint32_t dataset : samples_.datasets().only_of(id)) {
    importance_.forget_dataset(dataset);
    harm_.forget(dataset);
    uptake_.forget(dataset);
    stage_plan_.forget_dataset(dataset);
  }
  samples_.leave(id);
  importance_.forget_session(id);
  scheduler_.retention().forget_session(id);
  records_.left();
  stage_plan_.room().end_session(id);
  stage_.end_session(id);
  if (sessions_.empty()) stage_.rest();
  choose_policy();
  orders_new_ = true;
  say(Level::kInfo, "session {} over", id);
}

void Optimizer::end_empty_sessions(uint64_t now) {
  std::vector<uint32_t> over;
  for (const auto& [id, session] : sessions_) {
    const bool left = session->had_slot && session->empty_since_ns != 0 &&
                      now - session->empty_since_ns >= kGraceNs && session->live() == 0;
    const bool never_came = !session->had_slot && !session->peer_pidfd;
    if (left || never_came) over.push_back(id);
  }
  for (const uint32_t id : over) end_session(id);
}

void Optimizer::publish_metrics() {
  const std::vector<ImportanceBook::View> views = importance_.views();
  for (const auto& [id, session] : sessions_) {
    SessionMetrics* metrics = scheduler_.accounts().metrics(id);
    if (metrics == nullptr) continue;
    (*metrics)[static_cast<size_t>(SessionMetric::events_seen)] = session->events_seen;
    (*metrics)[static_cast<size_t>(SessionMetric::events_bad)] = session->events_bad;
    (*metrics)[static_cast<size_t>(SessionMetric::mount_refused)] = session->mounts_refused;
    const Recordings::Counts traced = recordings_.counts(id);
    (*metrics)[static_cast<size_t>(SessionMetric::trace_records)] = traced.recorded;
    (*metrics)[static_cast<size_t>(SessionMetric::trace_lost)] = traced.lost;
    count_importance(views, id, metrics);
    const uint64_t waited = session->waited_ns();
    (*metrics)[static_cast<size_t>(SessionMetric::stall_ns)] = waited;
    (*metrics)[static_cast<size_t>(SessionMetric::stall_avoided_ns)] =
        scheduler_.accounts().savings(id)->avoided_ns(waited);
    auto& shared = session->memory.get()->header.metrics;
    for (size_t i = 0; i < metrics->size(); ++i) {
      shared[i].store((*metrics)[i], std::memory_order_relaxed);
    }
  }
}

}  // namespace sluice::optimizer
