// The processes of sessions: which slot each has, when it ends, and which session started which.
// Core thread only.
#pragma once

#include <cstdint>

#include "optimizer/loop/event_loop.h"
#include "optimizer/sessions/session.h"
#include "policy/samples/sample_book.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Processes {
 public:
  // All outlive this.
  Processes(EventLoop* loop, policy::SampleBook* samples, const SessionMap* sessions);

  // Watches the process that requested the session, until its first slot is taken.
  void watch_peer(const Session& session);
  void on_slot_taken(Session& session, uint32_t slot, uint32_t pid);
  // Adds the process's final counters to the session's.
  static void on_slot_freed(Session& session, uint32_t slot, const ClientMetrics& metrics);
  // Searches again for processes that could not be watched for lack of descriptors.
  void find_unwatched();
  // Finds the sessions that started those whose parent is unknown.
  void find_parents();

 private:
  void find(Session& session, uint32_t slot);
  void find_parent(const Session& session);
  void on_end(policy::SessionId session, uint32_t slot);

  EventLoop* const loop_;
  policy::SampleBook* const samples_;
  const SessionMap* const sessions_;
};

}  // namespace sluice::optimizer
