#include "optimizer/services/streams/streams.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/io/memory.h"
#include "optimizer/io/thread_times.h"

namespace sluice::optimizer {

using policy::Access;
using policy::Accounts;
using policy::FileId;
using policy::number;
using policy::Observer;
using policy::PageTable;
using policy::SessionId;
using policy::StreamPlanner;
using policy::StreamView;
namespace {

using protocol::EventKind;
using protocol::MessageKind;

constexpr size_t kMaxMappings = 4096;  // of one session
constexpr size_t kMaxObserved = 256;
constexpr uint64_t kTimesNs = 50 * kMillisecond;  // between two readings of threads' times
constexpr uint64_t kMostIdleNs = 1'000'000'000;   // after a longer one a job was not reading
constexpr uint64_t kShareOfTime = 50;  // at most one part of so many is spent on reading them

constexpr const char* kEventNames[] = {"none",   "trip",   "read",  "mapped", "unmapped", "zapped",
                                       "random", "closed", "begin", "end",    "part"};

Access access_of(const Session& session, const TakenEvent& event, uint64_t now) {
  Access access;
  access.kind = event.data.kind == EventKind::kTrip              ? Access::Kind::kTrip
                : (event.data.flags & protocol::kFlagBegun) != 0 ? Access::Kind::kBegun
                                                                 : Access::Kind::kRead;
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

void remove_mapping(Session& session, uint32_t slot, uint64_t address) {
  std::erase_if(session.mappings.all, [&](const Mapping& mapping) {
    return mapping.slot == slot && mapping.address == address;
  });
  session.mappings.observed.remove_if([&](const ObservedMapping& mapping) {
    return mapping.slot == slot && mapping.address == address;
  });
}

}  // namespace

Streams::Streams(const Service& service, Histories* histories)
    : Service(service), histories_(histories) {
  base_->dispatcher.add<FileMessage>(this);
  base_->loop.wake_by([this](uint64_t) { return next_observation_ns(); });
}

void Streams::handle(const Peer& peer, const FileMessage& message, std::vector<UniqueFd> fds) {
  Session* session = sessions_->find_or_refuse(peer, message.file.session, message.file.token);
  if (session == nullptr) return;
  if (fds.size() != 1) {
    base_->server.refuse(peer.connection, "a file message carries one descriptor");
    return;
  }
  const size_t before = session->files.size();
  const bool known = std::any_of(session->files.begin(), session->files.end(), [&](FileId id) {
    const FileEntry* file = files_->find(id);
    return file != nullptr && file->device == message.file.device &&
           file->inode == message.file.inode;
  });
  if (!known && before >= Session::kMaxFiles) {
    // Closing a descriptor may take a request of its storage.
    base_->executor.run(policy::unknown_mount(session->id),
                        [fd = std::make_shared<UniqueFd>(std::move(fds.front()))] { fd->reset(); });
    base_->server.refuse(peer.connection,
                         "this session follows " + std::to_string(before) + " files already");
    return;
  }
  FileEntry& file =
      files_->use(session->id, message.file, message.path, std::move(fds.front()), now_ns());
  session->files.insert(file.id);
  const Accounts& accounts = plans_->scheduler.accounts();
  protocol::FileKnown answer{};
  answer.file = number(file.id);
  if (file.state == FileEntry::State::kOff) answer.flags |= protocol::kFileUnusable;
  if (accounts.exceeds(file.size, session->id)) answer.flags |= protocol::kFileDropBehind;
  answer.distance = accounts.distance(session->id);
  base_->server.send(peer.connection, MessageKind::kFileKnown,
                     std::as_bytes(std::span(&answer, 1)));
}

bool Streams::on_event(Session& session, const TakenEvent& event, uint64_t now) {
  const FileId id{event.data.file};
  const FileEntry* file = session.files.count(id) != 0 ? files_->find(id) : nullptr;
  if (file == nullptr || !event_is_sane(event.data, file->size)) return false;
  StreamPlanner& streams = plans_->scheduler.streams();
  if (logs(Level::kDebug)) {
    log_event(kEventNames[static_cast<size_t>(event.data.kind)], session.id, event);
  }
  switch (event.data.kind) {
    case EventKind::kTrip:
    case EventKind::kRead:
      // While samples are read in an order of their own, a read does not predict the next one.
      if ((event.data.flags & protocol::kFlagSample) != 0 &&
          plans_->samples.reads_at_random(static_cast<uint64_t>(event.pid) << 32 |
                                          event.data.tid)) {
        break;
      }
      streams.on_access(id, access_of(session, event, now));
      histories_->note_pass(session, now);
      break;
    case EventKind::kMapped:
      on_mapped(session, event, now);
      break;
    case EventKind::kUnmapped:
      remove_mapping(session, event.slot, event.data.address);
      break;
    case EventKind::kZapped:
      streams.on_unmapped(id, {event.data.offset, event.data.offset + event.data.length});
      for (ObservedMapping& mapping : session.mappings.observed) {
        if (mapping.slot != event.slot || mapping.file != id) continue;
        mapping.observer.unmapped({event.data.offset, event.data.offset + event.data.length});
      }
      break;
    case EventKind::kRandom:
      streams.on_random(id);
      break;
    default:
      break;
  }
  return true;
}

// One line per event, in the format that tests/replay reads: a debug log is a recording.
void Streams::log_event(const char* kind, SessionId session, const TakenEvent& event) const {
  say(Level::kDebug,
      "event t={} session={} pid={} tid={} kind={} file={} offset={} length={} flags={}",
      event.data.time_ns, number(session), event.pid, event.data.tid, kind, event.data.file,
      event.data.offset, event.data.length, event.data.flags);
  for (const StreamView& stream : plans_->scheduler.streams().views()) {
    if (number(stream.file) != event.data.file || event.data.offset > stream.opened) continue;
    say(Level::kDebug,
        "stream position={} opened={} frontier={} target={} in_flight={} rate={:.0f}",
        stream.position, stream.opened, stream.frontier, stream.target, stream.in_flight,
        stream.rate);
  }
}

void Streams::on_mapped(Session& session, const TakenEvent& event, uint64_t now) {
  remove_mapping(session, event.slot, event.data.address);  // reported twice, or replaced
  Mappings& mappings = session.mappings;
  if (mappings.all.size() >= kMaxMappings) return;
  const FileId file{event.data.file};
  mappings.all.push_back(
      {event.slot, file, event.data.address, event.data.offset, event.data.length});
  plans_->scheduler.streams().on_advised(file, session.id,
                                         (event.data.flags & protocol::kFlagByPage) != 0);
  if ((event.data.flags & protocol::kFlagObserve) == 0) return;
  if (mappings.observed.size() >= kMaxObserved) return;
  if (!mappings.times.contains(event.pid)) {
    mappings.times[event.pid] = {now, now + kTimesNs, thread_times(event.pid)};
  }
  std::unique_ptr<PageTable> table = open_page_table(event.pid, base_->settings.no_pagemap_scan);
  if (table == nullptr) {
    say(Level::kWarn, "process {} cannot be observed: {}", event.pid, strerror(errno));
    return;
  }
  mappings.observed.push_back({event.slot, file, event.pid, event.data.address, std::move(table),
                               Observer(event.data.address, event.data.offset, event.data.length,
                                        static_cast<uint64_t>(event.pid) << 32, session.id, now)});
}

void Streams::remove_process(Session& session, uint32_t slot, uint32_t pid) {
  Mappings& mappings = session.mappings;
  mappings.times.erase(pid);
  std::erase_if(mappings.all, [slot](const Mapping& mapping) { return mapping.slot == slot; });
  mappings.observed.remove_if(
      [slot](const ObservedMapping& mapping) { return mapping.slot == slot; });
}

// No hook sees faults in an observed mapping, and most are minor ones that wait for a page that is
// being read. Where pages were newly mapped, time that the faulting thread was off the processor is
// counted: what is not explained is stall.
void Streams::count_waits(Session& session, uint32_t pid) {
  Mappings::Times& before = session.mappings.times[pid];
  const uint64_t now = now_ns();
  if (now < before.next_ns) return;
  std::vector<policy::ThreadTime> threads = thread_times(pid);
  const uint64_t took = now - before.read_ns;
  if (before.read_ns != 0 && took <= kMostIdleNs) {
    session.mappings.waited_ns += policy::fault_wait_ns(before.threads, threads, took);
  }
  before = {now, now + std::max(kTimesNs, kShareOfTime * (now_ns() - now)), std::move(threads)};
}

uint64_t Streams::next_observation_ns() const {
  uint64_t next = UINT64_MAX;
  for (const auto& [id, session] : sessions_->all()) {
    for (const ObservedMapping& mapping : session->mappings.observed) {
      next = std::min(next, mapping.observer.next_ns());
    }
  }
  return next;
}

void Streams::observe(uint64_t now) {
  if (next_observation_ns() > now) return;
  std::vector<Access> found;
  for (const auto& [id, session] : sessions_->all()) {
    for (auto at = session->mappings.observed.begin(); at != session->mappings.observed.end();) {
      ObservedMapping& mapping = *at++;
      if (mapping.observer.next_ns() > now) continue;
      found.clear();
      const uint64_t begin = now_ns();
      const uint64_t used = thread_ns();
      const bool seen =
          mapping.observer.poll(*mapping.table,
                                plans_->scheduler.streams().observed(
                                    mapping.file, static_cast<uint64_t>(mapping.pid) << 32),
                                begin, &found);
      if (!found.empty()) count_waits(*session, mapping.pid);
      // Not the time that passed: others may have run meanwhile.
      mapping.observer.spent(thread_ns() - used, now_ns());
      // As with read events: accesses in a shuffled order do not predict the next one.
      if (plans_->scheduler.retention().is_shuffled(mapping.file, id)) found.clear();
      for (Access& access : found) {
        access.worker = mapping.pid != session->peer_pid;
        access.waited_ns = session->waited_ns();
        plans_->scheduler.streams().on_access(mapping.file, access);
        if (!logs(Level::kDebug)) continue;
        log_event("seen", id,
                  {mapping.slot,
                   mapping.pid,
                   {access.offset, access.length, begin, 0, number(mapping.file)}});
      }
      if (!seen) session->mappings.observed.erase(std::prev(at));
    }
  }
}

}  // namespace sluice::optimizer
