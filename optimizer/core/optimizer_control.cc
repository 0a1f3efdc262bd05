// Handles requests on the control socket.
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {
namespace {

using protocol::MessageKind;

constexpr size_t kMaxSessions = 512;
constexpr ptrdiff_t kMaxOfProcess = 64;  // sessions; each reconnect requests a new one
constexpr uint64_t kGoneDeadlineNs = kSecond;

template <typename Body>
std::span<const std::byte> bytes_of(const Body& body) {
  return std::as_bytes(std::span(&body, 1));
}

// Values that the user fixed can contradict each other: report it once, when they arrive.
void report_fixed_plan(uint32_t session, const PlanOptions& plan) {
  if (plan.size == 0) return;
  bool never = false;
  const uint64_t threshold = effective_threshold(plan, &never);
  const uint64_t asked = plan.size / 100 * plan.threshold;
  if (never) {
    say(Level::kWarn,
        "session {}: a distance of {} bytes is not below the size of {}: no checkpoint lies "
        "between "
        "the threshold and the end of a pre-cache, so each begins only once the last is used up",
        session, plan.distance, plan.size);
  } else if (threshold < asked) {
    say(Level::kWarn,
        "session {}: with a distance of {} bytes a threshold of {} % of {} may be stepped over: "
        "lowered to {} bytes",
        session, plan.distance, plan.threshold, plan.size, threshold);
  }
}

}  // namespace

Session* Optimizer::session_of(uint64_t id, uint64_t token) {
  const auto at = sessions_.find(static_cast<uint32_t>(id));
  if (id > UINT32_MAX || at == sessions_.end() || at->second->token != token) return nullptr;
  return at->second.get();
}

Session* Optimizer::session_or_refuse(const Peer& peer, uint64_t id, uint64_t token) {
  Session* session = session_of(id, token);
  if (session == nullptr) server_.refuse(peer.connection, "no such session");
  return session;
}

void Optimizer::on_message(const Peer& peer, std::span<const std::byte> packet,
                           std::vector<UniqueFd> fds) {
  std::visit([&](const auto& message) { handle(peer, message, std::move(fds)); },
             parse_packet(packet));
}

void Optimizer::handle(const Peer& peer, const BadMessage& bad, std::vector<UniqueFd> /*fds*/) {
  say(Level::kWarn, "refused a message of process {}: {}", peer.pid, bad.reason);
  server_.refuse(peer.connection, bad.reason);
}

void Optimizer::handle(const Peer& peer, const StatusMessage& /*message*/,
                       std::vector<UniqueFd> /*fds*/) {
  after_events([this, connection = peer.connection] {
    if (server_.connected(connection)) server_.send_text(connection, status());
  });
}

void Optimizer::handle(const Peer& peer, const StopMessage& /*message*/,
                       std::vector<UniqueFd> /*fds*/) {
  say(Level::kInfo, "asked to stop by process {}", peer.pid);
  stopping_ = true;
  waiters_.push_back({peer.connection, now_ns() + kGoneDeadlineNs});
}

void Optimizer::handle(const Peer& peer, const HelloMessage& hello, std::vector<UniqueFd> /*fds*/) {
  if (stopping_ || sessions_.size() >= kMaxSessions) {
    server_.refuse(peer.connection, stopping_ ? "the optimizer is ending" : "too many sessions");
    return;
  }
  const auto own = std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second->peer_pid == peer.pid && entry.second->peer_pidfd;
  });
  if (own >= kMaxOfProcess) {
    server_.refuse(peer.connection, "too many sessions of one process");
    return;
  }
  // Pids and times in shared memory are comparable only within the same pid and time namespaces.
  if (hello.pid != peer.pid || !shares_pid_namespace(peer.pid)) {
    server_.refuse(peer.connection, "the job is in another pid namespace");
    return;
  }
  if (!shares_time_namespace(peer.pid)) {
    server_.refuse(peer.connection, "the job is in another time namespace");
    return;
  }
  auto session = std::make_unique<Session>();
  session->id = next_session_++;
  uint64_t token = 0;
  if (getrandom(&token, sizeof token, GRND_NONBLOCK) != sizeof token) token = now_ns();
  session->token = token;
  session->peer_pid = peer.pid;
  session->command = command_line(peer.pid);
  session->options = hello.options;
  std::string reason;
  const UniqueFd memory = session->memory.create(session->id, session->token, &reason);
  session->peer_pidfd.reset(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!memory || !session->peer_pidfd) {
    server_.refuse(peer.connection, memory ? std::string("pidfd: ") + strerror(errno) : reason);
    return;
  }
  const uint32_t id = session->id;
  session->history.begin(&session->memory.get()->history, now_ns());
  watch(session->peer_pidfd.get(), Tag::kPeer, id, 1 /* EPOLLIN */, true);
  for (const std::string& problem : hello.problems) {
    say(Level::kWarn, "session {}: {}", id, problem);
  }
  if (hello.options.linger) linger_ = *hello.options.linger;
  widen_log(hello.options.log);
  no_cachestat_ |= hello.options.no_cachestat;
  no_pagemap_scan_ |= hello.options.no_pagemap_scan;
  PlanOptions plan{hello.options.distance, hello.options.size, hello.options.threshold};
  scheduler_.add_session(id, plan, hello.options.prefetch, hello.options.memory,
                         hello.options.policy);
  plan.distance = scheduler_.accounts().distance(id);
  report_fixed_plan(id, plan);

  RingReader::Handler handler;
  handler.events = [this, mailbox = mailbox_, id](std::vector<TakenEvent> events) {
    mailbox->post([this, id, events = std::move(events)] { on_events(id, events); });
  };
  handler.slot_taken = [this, mailbox = mailbox_, id](uint32_t slot, uint32_t pid) {
    mailbox->post([this, id, slot, pid] { on_slot_taken(id, slot, pid); });
  };
  handler.slot_freed = [this, mailbox = mailbox_, id](uint32_t slot, uint32_t pid,
                                                      const ClientMetrics& metrics) {
    mailbox->post([this, id, slot, pid, metrics] { on_slot_freed(id, slot, pid, metrics); });
  };
  handler.congested = [mailbox = mailbox_] { return mailbox->backlog() > 256; };
  handler.patient = [idle = idle_] { return idle->load(std::memory_order_relaxed); };
  session->reader = std::make_unique<RingReader>(session->memory.get(), std::move(handler));

  const protocol::Welcome welcome{id, session->token, sizeof(protocol::Shared)};
  server_.send(peer.connection, MessageKind::kWelcome, bytes_of(welcome), memory.get());
  say(Level::kInfo, "session {}: process {}: {}", id, peer.pid, session->command);
  sessions_[id] = std::move(session);
  // After an optimizer was killed, workers may reconnect before the process that started them.
  for (const auto& [other, known] : sessions_) {
    if (!samples_.orders().has_parent(other)) find_parent(*known);
  }
}

void Optimizer::handle(const Peer& peer, const FileMessage& message, std::vector<UniqueFd> fds) {
  Session* session = session_or_refuse(peer, message.file.session, message.file.token);
  if (session == nullptr) return;
  if (fds.size() != 1) {
    server_.refuse(peer.connection, "a file message carries one descriptor");
    return;
  }
  const size_t before = session->files.size();
  FileEntry* known = nullptr;
  for (const uint32_t id : session->files) {
    FileEntry* file = files_.find(id);
    if (file != nullptr && file->device == message.file.device &&
        file->inode == message.file.inode) {
      known = file;
    }
  }
  if (known == nullptr && before >= Session::kMaxFiles) {
    server_.refuse(peer.connection,
                   "this session follows " + std::to_string(before) + " files already");
    return;
  }
  FileEntry& file =
      files_.use(session->id, message.file, message.path, std::move(fds.front()), now_ns());
  session->files.insert(file.id);
  protocol::FileKnown answer{};
  answer.file = file.id;
  if (file.state == FileEntry::State::kOff) answer.flags |= protocol::kFileUnusable;
  if (scheduler_.accounts().exceeds(file.size, session->id))
    answer.flags |= protocol::kFileDropBehind;
  answer.distance = scheduler_.accounts().distance(session->id);
  server_.send(peer.connection, MessageKind::kFileKnown, bytes_of(answer));
}

void Optimizer::handle(const Peer& peer, const ByeMessage& message, std::vector<UniqueFd> /*fds*/) {
  Session* session = session_or_refuse(peer, message.bye.session, message.bye.token);
  if (session == nullptr) return;
  bool others = false;
  for (const protocol::Slot& slot : session->memory.get()->slots) {
    const uint32_t pid = slot.pid.load(std::memory_order_acquire);
    others |= pid != 0 && pid != peer.pid && look_for(pid) != Life::kEnded;
  }
  if (!others) end_session(session->id);
  waiters_.push_back({peer.connection, now_ns() + kGoneDeadlineNs});
  answer_waiters(false);
}

void Optimizer::answer_waiters(bool all) {
  if (!all && files_.closing() + recordings_.unsettled() > 0) return;
  for (const Waiter& waiter : waiters_) server_.send(waiter.connection, MessageKind::kGone, {});
  waiters_.clear();
}

}  // namespace sluice::optimizer
