#include "optimizer/sessions/processes.h"

#include <sys/epoll.h>

#include "optimizer/io/ancestors.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {

using policy::number;
using policy::SampleBook;
using policy::SessionId;
namespace {

// From a worker up to the process that owns the order: a fork server and a shell may be between.
constexpr unsigned kMostAncestors = 4;

constexpr unsigned kSlotBits = 16;  // of an event's value; the session's id is above them

}  // namespace

Processes::Processes(EventLoop* loop, SampleBook* samples, const SessionMap* sessions)
    : loop_(loop), samples_(samples), sessions_(sessions) {
  loop_->on(EventLoop::Tag::kProcess, [this](uint64_t value, uint32_t) {
    on_end(SessionId{static_cast<uint32_t>(value >> kSlotBits)},
           static_cast<uint32_t>(value & 0xffff));
  });
  loop_->on(EventLoop::Tag::kPeer, [this](uint64_t value, uint32_t) {
    const auto at = sessions_->find(SessionId{static_cast<uint32_t>(value)});
    if (at != sessions_->end()) at->second->peer_pidfd.reset();
  });
}

void Processes::watch_peer(const Session& session) {
  loop_->watch(session.peer_pidfd.get(), EventLoop::Tag::kPeer, number(session.id), EPOLLIN);
}

void Processes::on_slot_taken(Session& session, uint32_t slot, uint32_t pid) {
  Process& process = session.processes[slot];
  process.pid = pid;
  const std::vector<uint32_t> parent = ancestors_of(pid, 1);
  process.parent = parent.empty() ? 0 : parent.front();
  session.empty_since_ns = 0;
  find(session, slot);
}

void Processes::on_slot_freed(Session& session, uint32_t slot, const ClientMetrics& metrics) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    session.counts.freed[i] += metrics[i];
    session.memory.get()->header.freed[i].store(session.counts.freed[i], std::memory_order_relaxed);
  }
  session.processes[slot] = {};
  if (session.live() == 0) session.empty_since_ns = now_ns();
}

// If no descriptor is left, the process is assumed alive and looked up again by the next tick.
void Processes::find(Session& session, uint32_t slot) {
  Process& process = session.processes[slot];
  int pidfd = -1;
  const Life life = life_of(process.pid, &pidfd);
  process.pidfd.reset(pidfd);
  process.unwatched = life == Life::kUnknown;
  if (process.pidfd) {
    loop_->watch(process.pidfd.get(), EventLoop::Tag::kProcess,
                 uint64_t{number(session.id)} << kSlotBits | slot, EPOLLIN);
  } else if (life == Life::kEnded && session.reader != nullptr) {
    session.reader->free_slot(slot, process.pid);
  }
}

void Processes::find_unwatched() {
  for (const auto& [id, session] : *sessions_) {
    for (uint32_t slot = 0; slot < session->processes.size(); ++slot) {
      if (session->processes[slot].unwatched) find(*session, slot);
    }
  }
}

void Processes::find_parents() {
  for (const auto& [id, session] : *sessions_) {
    if (samples_->orders().origin(id) == id) find_parent(*session);
  }
}

// A spawned worker reads in the order of the process that started it.
void Processes::find_parent(const Session& session) {
  for (const uint32_t ancestor : ancestors_of(session.peer_pid, kMostAncestors)) {
    // The newest first: a process that began as a child in one job may have become another job.
    for (auto other = sessions_->rbegin(); other != sessions_->rend(); ++other) {
      if (other->first == session.id || !other->second->has_process(ancestor)) continue;
      samples_->orders().set_parent(session.id, other->first);
      return;
    }
  }
}

void Processes::on_end(SessionId id, uint32_t slot) {
  const auto at = sessions_->find(id);
  if (at == sessions_->end() || slot >= protocol::kSlots) return;
  Process& process = at->second->processes[slot];
  process.pidfd.reset();
  if (at->second->reader != nullptr) at->second->reader->free_slot(slot, process.pid);
}

}  // namespace sluice::optimizer
