#include "optimizer/trace/recordings.h"

#include <algorithm>

#include "optimizer/io/log.h"
#include "optimizer/trace/trace_file.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::kNoSession;
using policy::SampleBook;
using policy::SessionId;

void Recordings::attach(SessionId session, uint32_t pid, uint32_t parent, UniqueFd passed,
                        Answer answer) {
  members_[session] = {pid, parent, nullptr, {}};
  // A descriptor's mount is unknown before the first call on it, which may hang.
  executor_->run(policy::unknown_mount(session),
                 [this, mailbox = mailbox_, session, answer = std::move(answer),
                  fd = std::make_shared<UniqueFd>(std::move(passed))] {
                   const TraceIdentity identity = identify_trace(fd->get());
                   if (!identity.problem.empty()) {
                     fd->reset();
                     mailbox->post([answer, problem = identity.problem] { answer(problem); });
                     return;
                   }
                   mailbox->post([this, session, identity, fd, answer] {
                     identified(session, identity.device, identity.inode, fd, answer);
                   });
                 });
}

// Closes a descriptor that is no longer used, on the executor: close() can block like any call.
void Recordings::dispose(uint64_t device, std::shared_ptr<UniqueFd> fd) {
  executor_->run(device, [fd = std::move(fd)] { fd->reset(); });
}

void Recordings::identified(SessionId session, uint64_t device, uint64_t inode,
                            std::shared_ptr<UniqueFd> fd, const Answer& answer) {
  const auto member = members_.find(session);
  if (member == members_.end()) {
    dispose(device, std::move(fd));
    answer("the session is over");
    return;
  }
  const auto known = std::find_if(traces_.begin(), traces_.end(), [&](const Trace& trace) {
    return trace.device == device && trace.inode == inode && !trace.closing;
  });
  if (known != traces_.end()) {
    dispose(device, std::move(fd));
    known->sessions.insert(session);
    member->second.trace = &*known;
    if (known->state == Trace::State::kOpening) {
      known->answers.push_back(answer);
    } else {
      answer(known->state == Trace::State::kOpen ? "" : "its recording has ended");
    }
    return;
  }
  Trace& trace = traces_.emplace_back();
  trace.device = device;
  trace.inode = inode;
  trace.fd = std::move(fd);
  trace.sessions.insert(session);
  trace.answers.push_back(answer);
  trace.busy = true;
  member->second.trace = &trace;
  executor_->run(device, [this, mailbox = mailbox_, at = &trace, handle = trace.fd] {
    PreparedTrace result = prepare_trace(handle->get());
    mailbox->post(
        [this, at, result = std::move(result)] { prepared(*at, result.jobs, result.problem); });
  });
}

void Recordings::prepared(Trace& trace, uint32_t jobs, const std::string& problem) {
  trace.busy = false;
  std::vector<Answer> answers = std::move(trace.answers);
  if (problem.empty()) {
    trace.state = Trace::State::kOpen;
    trace.recorder = Recorder(jobs);
  } else {
    trace.state = Trace::State::kFailed;  // the caller of attach() logs the reason
  }
  for (const Answer& answer : answers) answer(problem);
  close_if_over(trace);
}

Recordings::Member* Recordings::recording(SessionId session) {
  if (members_.empty()) return nullptr;
  const auto at = members_.find(session);
  return at != members_.end() && at->second.trace != nullptr ? &at->second : nullptr;
}

void Recordings::begin(SessionId session, uint64_t reader, DatasetId dataset, uint64_t index,
                       const SampleBook& book) {
  const Member* member = recording(session);
  if (member == nullptr || member->trace->state != Trace::State::kOpen) return;
  auto following = book.following(session, dataset);
  if (!following) return;
  if (following->session != session) {
    // A worker with a session of its own: prefer its parent's order where several have one.
    for (const auto& [id, other] : members_) {
      if (other.pid != member->parent) continue;
      const auto parents = book.following(id, dataset);
      if (parents && parents->session == id) following = parents;
    }
  }
  Trace& trace = *member->trace;
  const bool ordered = following->session != kNoSession;
  const Recorder::Origin origin{following->name, following->samples, dataset, following->session,
                                ordered ? std::optional<uint32_t>(following->epoch) : std::nullopt};
  if (!trace.recorder.begin(reader, index, origin)) fail(trace, trace.recorder.problem());
}

void Recordings::end(SessionId session, uint64_t reader, DatasetId dataset, uint64_t index,
                     uint64_t bytes) {
  Member* member = recording(session);
  if (member == nullptr) return;
  Trace& trace = *member->trace;
  if (trace.state != Trace::State::kOpen) {
    ++member->counts.lost;
    return;
  }
  const auto record = trace.recorder.end(reader, dataset, index, bytes);
  if (!record) return;
  ++member->counts.recorded;
  trace.waiting.push_back(*record);
  trace.owners.push_back(session);
  if (trace.waiting.size() >= kMaxWaiting) {
    fail(trace, "its storage is too slow, or hangs");
  }
}

void Recordings::remove_process(uint32_t pid) {
  for (Trace& trace : traces_) trace.recorder.remove_process(pid);
}

void Recordings::count_lost(const std::vector<SessionId>& owners) {
  for (const SessionId session : owners) {
    const auto at = members_.find(session);
    if (at == members_.end()) continue;
    --at->second.counts.recorded;
    ++at->second.counts.lost;
  }
}

void Recordings::fail(Trace& trace, const std::string& problem) {
  if (trace.state == Trace::State::kFailed) return;
  say(Level::kWarn, "recording of samples has ended: {}", problem);
  trace.state = Trace::State::kFailed;
  count_lost(trace.owners);
  trace.waiting = {};
  trace.owners = {};
  trace.recorder = Recorder();
}

void Recordings::write(Trace& trace) {
  if (trace.busy || trace.state != Trace::State::kOpen || trace.waiting.empty()) return;
  trace.busy = true;
  executor_->run(trace.device,
                 [this, mailbox = mailbox_, at = &trace, fd = trace.fd,
                  records = std::move(trace.waiting), owners = std::move(trace.owners)] {
                   const std::string problem = append_records(fd->get(), records);
                   mailbox->post([this, at, problem, owners] {
                     at->busy = false;
                     ++at->batches;
                     if (!problem.empty()) {
                       count_lost(owners);
                       fail(*at, problem);
                     }
                     if (at->batches < at->settle) write(*at);
                     close_if_over(*at);
                   });
                 });
  trace.waiting = {};
  trace.owners = {};
}

void Recordings::tick() {
  for (Trace& trace : traces_) write(trace);
}

void Recordings::leave(SessionId session) {
  const auto at = members_.find(session);
  if (at == members_.end()) return;
  Trace* trace = at->second.trace;
  members_.erase(at);
  if (trace == nullptr) return;
  trace->sessions.erase(session);
  const bool writing = trace->busy && trace->state != Trace::State::kOpening;
  trace->settle = trace->batches + (writing ? 1 : 0) + (trace->waiting.empty() ? 0 : 1);
  write(*trace);
  close_if_over(*trace);
}

void Recordings::close_if_over(Trace& trace) {
  if (trace.busy) return;
  const bool all_written = trace.waiting.empty() || trace.state != Trace::State::kOpen;
  if (!trace.sessions.empty()) {
    if (all_written) trace.settle = 0;
    if (trace.batches >= trace.settle && on_settled) on_settled();
    return;
  }
  if (!all_written) {
    write(trace);
    return;
  }
  trace.busy = trace.closing = true;
  executor_->run(trace.device, [this, mailbox = mailbox_, at = &trace, fd = std::move(trace.fd)] {
    fd->reset();
    mailbox->post([this, at] {
      traces_.remove_if([at](const Trace& one) { return &one == at; });
      if (on_settled) on_settled();
    });
  });
}

size_t Recordings::unsettled() const {
  return static_cast<size_t>(std::count_if(traces_.begin(), traces_.end(), [](const Trace& trace) {
    return trace.sessions.empty() || trace.batches < trace.settle;
  }));
}

Recordings::Counts Recordings::counts(SessionId session) const {
  const auto at = members_.find(session);
  return at == members_.end() ? Counts{} : at->second.counts;
}

}  // namespace sluice::optimizer
