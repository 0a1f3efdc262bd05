// What each session may take in memory and has taken, and its counters. Pure; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "policy/planner/savings.h"
#include "policy/planner/stream_plan.h"
#include "policy/replacement/table.h"
#include "protocol/metrics.h"

namespace sluice::optimizer {

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

  void add(uint32_t session, const PlanOptions& options, bool prefetch, uint64_t memory,
           std::optional<PolicyKind> policy);
  void remove(uint32_t session) { sessions_.erase(session); }
  // nullptr if it does not exist.
  Session* find(uint32_t session);
  const Session* find(uint32_t session) const;
  bool prefetches(uint32_t session) const;
  void set_policy(uint32_t session, PolicyKind policy);

  SessionMetrics* metrics(uint32_t session);  // nullptr if it does not exist
  // Waiting that the session's job was saved; nullptr if it does not exist.
  Savings* savings(uint32_t session);
  // Without effect if the session does not exist, as all that follow.
  void count(uint32_t session, SessionMetric metric, uint64_t by);
  // Data that was, or was not, in memory because of Sluice when the session came to it.
  void hit(uint32_t session, Demand demand);
  void missed(uint32_t session, Demand demand);

  // Memory: bytes that a session takes until they are released.
  void charge(uint32_t session, uint64_t bytes);
  void release(uint32_t session, uint64_t bytes);
  // Releases what was prefetched for the session and has now been read.
  void use(uint32_t session, uint64_t bytes);
  // Bytes of reads that are being planned and will be charged; all end at once.
  void reserve(uint32_t session, uint64_t bytes);
  void end_reservations();
  bool room(uint32_t session, uint64_t bytes) const;
  uint64_t budget(uint32_t session) const;  // bytes
  // A file of `size` bytes does not fit into the session's budget.
  bool exceeds(uint64_t size, uint32_t session) const { return size > budget(session); }
  // Bytes per cell that suit the budget.
  uint64_t distance(uint32_t session) const;

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
  std::map<uint32_t, Session> sessions_;
};

}  // namespace sluice::optimizer
