#include "optimizer/sessions/sessions.h"

#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {

using policy::effective_threshold;
using policy::kNoSession;
using policy::number;
using policy::PlanOptions;
using policy::SessionId;
namespace {

using protocol::MessageKind;

constexpr size_t kMaxSessions = 512;
constexpr ptrdiff_t kMaxOfProcess = 64;  // sessions; each reconnect requests a new one
constexpr size_t kCongested = 256;       // mailbox items, above which events stay in the rings

// From the end of the last process to that of the session: a child that was forked just before
// and has not claimed its slot yet must find the session alive.
constexpr uint64_t kGraceNs = 200 * kMillisecond;

// The first 16 bytes of the body of every message that jobs send, except hello.
struct Sender {
  uint64_t session = 0, token = 0;
};

Sender sender_of(std::span<const std::byte> packet) {
  protocol::MessageHeader header;
  Sender found;
  if (packet.size() < sizeof header + sizeof found) return found;
  memcpy(&header, packet.data(), sizeof header);
  memcpy(&found, packet.data() + sizeof header, sizeof found);
  return header.kind == MessageKind::kHello ? Sender{} : found;
}

// Values that the user fixed can contradict each other: report it once, when they arrive.
void report_fixed_plan(SessionId session, const PlanOptions& plan) {
  if (plan.size == 0) return;
  bool never = false;
  const uint64_t threshold = effective_threshold(plan, &never);
  const uint64_t configured = plan.size / 100 * plan.threshold;
  if (never) {
    say(Level::kWarn,
        "session {}: a distance of {} bytes is not below the size of {}: no checkpoint is between "
        "the threshold and the end of a pre-cache, so each begins only once the last is used up",
        number(session), plan.distance, plan.size);
  } else if (threshold < configured) {
    say(Level::kWarn,
        "session {}: with a distance of {} bytes a threshold of {} % of {} may be stepped over: "
        "lowered to {} bytes",
        number(session), plan.distance, plan.threshold, plan.size, threshold);
  }
}

}  // namespace

Sessions::Sessions(Base* base, Plans* plans)
    : base_(base), plans_(plans), processes_(&base->loop, &plans->samples, &sessions_) {
  base_->dispatcher.add<BadMessage, HelloMessage>(this);
  base_->server.on_packet = [this](const Peer& peer, std::span<const std::byte> packet,
                                   std::vector<UniqueFd> fds) {
    on_packet(peer, packet, std::move(fds));
  };
}

Session* Sessions::find(SessionId id) const {
  const auto at = sessions_.find(id);
  return at == sessions_.end() ? nullptr : at->second.get();
}

Session* Sessions::find(uint64_t id, uint64_t token) const {
  Session* session = id > UINT32_MAX ? nullptr : find(SessionId{static_cast<uint32_t>(id)});
  return session == nullptr || session->token != token ? nullptr : session;
}

Session* Sessions::find_or_refuse(const Peer& peer, uint64_t id, uint64_t token) const {
  Session* session = find(id, token);
  if (session == nullptr) base_->server.refuse(peer.connection, "no such session");
  return session;
}

void Sessions::on_packet(const Peer& peer, std::span<const std::byte> packet,
                         std::vector<UniqueFd> fds) {
  const Sender sender = sender_of(packet);
  const SessionId next{next_id_};
  const Session* session = find(sender.session, sender.token);
  const SessionId id = session != nullptr ? session->id : kNoSession;
  if (guarded(id, [&] { base_->dispatcher.dispatch(peer, packet, std::move(fds)); })) return;
  // Removes a session whose creation failed halfway.
  if (next_id_ != number(next) && find(next) == nullptr) {
    guarded(kNoSession, [&] { plans_->scheduler.remove_session(next, now_ns()); });
  }
  guarded(kNoSession,
          [&] { base_->server.refuse(peer.connection, "the optimizer has no memory for this"); });
}

void Sessions::handle(const Peer& peer, const BadMessage& bad, std::vector<UniqueFd> /*fds*/) {
  say(Level::kWarn, "refused a message of process {}: {}", peer.pid, bad.reason);
  base_->server.refuse(peer.connection, bad.reason);
}

std::string Sessions::refusal(const Peer& peer, const HelloMessage& hello) const {
  if (base_->loop.stopping()) return "the optimizer is ending";
  if (sessions_.size() >= kMaxSessions) return "too many sessions";
  const auto own = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second->peer_pid == peer.pid && entry.second->peer_pidfd;
  });
  if (own >= kMaxOfProcess) return "too many sessions of one process";
  // Pids and times in shared memory are comparable only within the same pid and time namespaces.
  if (hello.pid != peer.pid || !shares_pid_namespace(peer.pid)) {
    return "the job is in another pid namespace";
  }
  return shares_time_namespace(peer.pid) ? "" : "the job is in another time namespace";
}

void Sessions::handle(const Peer& peer, const HelloMessage& hello, std::vector<UniqueFd> /*fds*/) {
  if (std::string reason = refusal(peer, hello); !reason.empty()) {
    base_->server.refuse(peer.connection, reason);
    return;
  }
  auto session = std::make_unique<Session>();
  const SessionId id = session->id = SessionId{next_id_++};
  uint64_t token = 0;
  if (getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) token = now_ns();
  session->token = token;
  session->peer_pid = peer.pid;
  session->command = command_line(peer.pid);
  session->options = hello.options;
  std::string reason;
  const UniqueFd memory = session->memory.create(id, token, &reason);
  session->peer_pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!memory || !session->peer_pidfd) {
    base_->server.refuse(peer.connection,
                         memory ? std::string("pidfd: ") + strerror(errno) : reason);
    return;
  }
  session->history.begin(&session->memory.get()->history, now_ns());
  processes_.watch_peer(*session);
  adopt_options(id, hello);
  session->reader = start_reader(*session);
  const protocol::Welcome welcome{number(id), token, sizeof(protocol::Shared)};
  base_->server.send(peer.connection, MessageKind::kWelcome, std::as_bytes(std::span(&welcome, 1)),
                     memory.get());
  say(Level::kInfo, "session {}: process {}: {}", number(id), peer.pid, session->command);
  sessions_[id] = std::move(session);
  // After an optimizer was killed, workers may reconnect before the process that started them.
  processes_.find_parents();
}

void Sessions::adopt_options(SessionId id, const HelloMessage& hello) {
  for (const std::string& problem : hello.problems) {
    say(Level::kWarn, "session {}: {}", number(id), problem);
  }
  const SessionOptions& options = hello.options;
  if (options.linger) base_->settings.linger = *options.linger;
  widen_log(options.log);
  base_->settings.no_cachestat |= options.no_cachestat;
  base_->settings.no_pagemap_scan |= options.no_pagemap_scan;
  PlanOptions plan{options.distance, options.size, options.threshold};
  plans_->scheduler.add_session(id, plan, options.prefetch, options.memory, options.policy);
  plan.distance = plans_->scheduler.accounts().distance(id);
  report_fixed_plan(id, plan);
}

std::unique_ptr<RingReader> Sessions::start_reader(const Session& session) {
  RingReader::Handler handler;
  handler.events = [this, mailbox = base_->loop.mailbox(),
                    id = session.id](std::vector<TakenEvent> events) {
    mailbox->post([this, id, events = std::move(events)] {
      if (Session* owner = find(id)) callbacks.events(*owner, events);
    });
  };
  handler.slot_taken = [this, mailbox = base_->loop.mailbox(), id = session.id](uint32_t slot,
                                                                                uint32_t pid) {
    mailbox->post([this, id, slot, pid] {
      if (Session* owner = find(id)) processes_.on_slot_taken(*owner, slot, pid);
    });
  };
  handler.slot_freed = [this, mailbox = base_->loop.mailbox(), id = session.id](
                           uint32_t slot, uint32_t pid, const ClientMetrics& metrics) {
    mailbox->post([this, id, slot, pid, metrics] {
      Session* const owner = find(id);
      if (owner == nullptr) return;
      Processes::on_slot_freed(*owner, slot, metrics);
      callbacks.slot_freed(*owner, slot, pid);
    });
  };
  handler.congested = [mailbox = base_->loop.mailbox()] { return mailbox->backlog() > kCongested; };
  handler.patient = [this] { return idle_.load(std::memory_order_relaxed); };
  return std::make_unique<RingReader>(session.memory.get(), std::move(handler));
}

bool Sessions::guarded(SessionId session, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    try {
      if (session != kNoSession) {
        end_after_error(session, error.what());
      } else {
        say(Level::kError, "work was abandoned: {}", error.what());
      }
    } catch (const std::exception&) {
      if (session != kNoSession) failed_ = session;  // the next tick tries again
    }
  }
  return false;
}

void Sessions::end_after_error(SessionId session, const char* why) {
  say(Level::kError, "session {}: ended after an error: {}", number(session), why);
  end(session);
}

void Sessions::after_events(std::function<void()> then) {
  const auto left = std::make_shared<std::atomic<size_t>>(sessions_.size() + 1);
  const std::function<void()> one_less = [left, mailbox = base_->loop.mailbox(),
                                          then = std::move(then)] {
    if (left->fetch_sub(1) == 1) mailbox->post(then);
  };
  for (const auto& [id, session] : sessions_) {
    // A session that is ending has no reader any more: its events are in the mailbox already.
    session->reader != nullptr ? session->reader->after_events(one_less) : one_less();
  }
  one_less();
}

void Sessions::end(SessionId id) {
  Session* const ending = find(id);
  if (ending == nullptr) return;
  ending->reader.reset();  // drains the rings
  base_->loop.run_mailbox();
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) return;  // one of its events failed, which has ended it
  callbacks.ending(*at->second);
  const std::unique_ptr<Session> session = std::move(at->second);
  session->memory.get()->header.closed.store(1, std::memory_order_release);
  sessions_.erase(at);
  callbacks.ended(id);
  say(Level::kInfo, "session {} over", number(id));
}

void Sessions::tick(uint64_t now) {
  processes_.find_unwatched();
  std::vector<SessionId> over;
  for (const auto& [id, session] : sessions_) {
    const std::optional<uint64_t>& empty = session->empty_since_ns;
    const bool left = empty && *empty != 0 && now - *empty >= kGraceNs && session->live() == 0;
    const bool never_came = !empty && !session->peer_pidfd;
    if (left || never_came) over.push_back(id);
  }
  for (const SessionId id : over) end(id);
}

}  // namespace sluice::optimizer
