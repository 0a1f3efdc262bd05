// All sessions: how they begin, which one a message or an event belongs to, and how they end. Core
// thread only, except where a member says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/loop/base.h"
#include "optimizer/sessions/plans.h"
#include "optimizer/sessions/processes.h"
#include "optimizer/sessions/session.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Sessions {
 public:
  // What the services do with a session. All are set before the first session begins.
  struct Callbacks {
    std::function<void(Session&, const std::vector<TakenEvent>&)> events;
    std::function<void(Session&, uint32_t slot, uint32_t pid)> slot_freed;
    // It has no events any more; what it reports now is final.
    std::function<void(Session&)> ending;
    std::function<void(policy::SessionId session)> ended;  // and is removed here
  };

  // Both outlive this. Receives all packets of the server.
  Sessions(Base* base, Plans* plans);
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  const SessionMap& all() const { return sessions_; }
  bool empty() const { return sessions_.empty(); }
  bool had_any() const { return next_id_ != 1; }
  // nullptr: no such session; with a token: or the token is wrong.
  Session* find(policy::SessionId id) const;
  Session* find(uint64_t id, uint64_t token) const;
  // The same, and the peer has been sent a refusal.
  Session* find_or_refuse(const Peer& peer, uint64_t id, uint64_t token) const;

  void handle(const Peer& peer, const BadMessage& bad, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const HelloMessage& hello, std::vector<UniqueFd> fds);

  // Runs `work` for a session (kNoSession: for none). If it throws (std::bad_alloc and the like),
  // only this session ends. False: it threw.
  bool guarded(policy::SessionId session, const std::function<void()>& work);
  // Runs `then` once all events that jobs wrote before this call have been handled.
  void after_events(std::function<void()> then);
  // Runs what waits in the mailbox, too, which may end further sessions: iterators into all() are
  // invalid afterwards. No effect if there is no such session.
  void end(policy::SessionId id);
  // Ends the session that guarded() could not end for lack of memory.
  void end_failed() { end(std::exchange(failed_, policy::kNoSession)); }
  // Several times a second: searches for processes, and ends sessions that have none left.
  void tick(uint64_t now_ns);
  // Whether no read or fetch is under way.
  void set_idle(bool idle) { idle_.store(idle, std::memory_order_relaxed); }

  Callbacks callbacks;

 private:
  void on_packet(const Peer& peer, std::span<const std::byte> packet, std::vector<UniqueFd> fds);
  std::string refusal(const Peer& peer, const HelloMessage& hello) const;
  void adopt_options(policy::SessionId session, const HelloMessage& hello);
  std::unique_ptr<RingReader> start_reader(const Session& session);
  void end_after_error(policy::SessionId session, const char* why);

  Base* const base_;
  Plans* const plans_;
  uint32_t next_id_ = 1;
  policy::SessionId failed_{};    // a session that failed and could not be ended yet
  std::atomic<bool> idle_{true};  // read by the ring readers
  SessionMap sessions_;           // joins its readers before the rest of this ends
  Processes processes_;
};

}  // namespace sluice::optimizer
