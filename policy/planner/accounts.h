// What each session may take in memory and has taken, and its counters. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "policy/planner/savings.h"
#include "policy/planner/stream_plan.h"
#include "policy/replacement/table.h"
#include "policy/util/ids.h"
#include "protocol/metrics.h"

namespace sluice::policy {

using protocol::SessionMetric;
using SessionMetrics = std::array<uint64_t, protocol::kSessionMetricCount>;

class Accounts {
 public:
  struct Session {
    PlanOptions options;
    bool prefetch = true;
    uint64_t memory = 0;               // bytes; 0: limited only by the common budget
    std::optional<PolicyKind> policy;  // of records; nullopt: the planner chooses
    uint64_t outstanding = 0;          // bytes prefetched and not passed, and in flight
    uint64_t reserved = 0;             // bytes of reads that are being planned
    SessionMetrics metrics{};
    Savings savings;
    uint64_t passed = 0, passed_ready = 0, passes = 0;  // as in SessionView
  };

  void add(SessionId session, const PlanOptions& options, bool prefetch, uint64_t memory,
           std::optional<PolicyKind> policy);
  void remove(SessionId session) { sessions_.erase(session); }
  // nullptr if it does not exist.
  Session* find(SessionId session);
  const Session* find(SessionId session) const;
  bool prefetches(SessionId session) const;
  void set_policy(SessionId session, PolicyKind policy);

  SessionMetrics* metrics(SessionId session);  // nullptr if it does not exist
  // Waiting that the session's job was saved; nullptr if it does not exist.
  Savings* savings(SessionId session);
  // Without effect if the session does not exist, as all that follow.
  void count(SessionId session, SessionMetric metric, uint64_t by);
  // Data that was, or was not, in memory because of Sluice when the session came to it.
  void hit(SessionId session, Demand demand);
  void missed(SessionId session, Demand demand);

  // Memory: bytes that a session takes until they are released.
  void charge(SessionId session, uint64_t bytes);
  void release(SessionId session, uint64_t bytes);
  // Releases what was prefetched for the session and has now been read.
  void use(SessionId session, uint64_t bytes);
  // Bytes of reads that are being planned and will be charged; all end at once.
  void reserve(SessionId session, uint64_t bytes);
  void end_reservations();
  bool room(SessionId session, uint64_t bytes) const;
  uint64_t budget(SessionId session) const;  // bytes
  // A file of `size` bytes does not fit into the session's budget.
  bool exceeds(uint64_t size, SessionId session) const { return size > budget(session); }
  // Bytes per cell that suit the budget.
  uint64_t distance(SessionId session) const;

  void set_budget(uint64_t bytes) { budget_ = bytes; }
  uint64_t budget() const { return budget_; }            // bytes, of all sessions
  uint64_t outstanding() const { return outstanding_; }  // bytes, of all sessions
  // A read was held back because the budget is used up.
  bool starved() const { return starved_; }
  void set_starved(bool starved) { starved_ = starved; }

 private:
  uint64_t budget_ = 256 << 20;
  uint64_t outstanding_ = 0;
  uint64_t reserved_ = 0;
  bool starved_ = false;
  std::map<SessionId, Session> sessions_;
};

}  // namespace sluice::policy
