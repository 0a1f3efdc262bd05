// Threads that work for sessions in file systems, and may outlast them: they then hold a mount.
// Core thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "optimizer/io/executor.h"
#include "optimizer/sessions/sessions.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class SessionThreads {
 public:
  // Both outlive this. At most `most` threads, of them `per_mount` for one mount.
  SessionThreads(Base* base, const Sessions* sessions, unsigned most, unsigned per_mount)
      : base_(base), sessions_(sessions), executor_(most, per_mount) {}

  // Runs `work` in a thread, then `done` on the core thread. If `work` throws, as for want of
  // memory, that work alone is lost. kNoSession: it holds no mount for a session. `mount`: device
  // number.
  void run(policy::SessionId session, uint64_t mount, std::function<void()> work,
           std::function<void()> done);
  // How much work is under way for sessions that have ended; for the session.
  size_t closing() const;
  size_t running(policy::SessionId session) const;
  std::function<void()> on_all_closed;  // closing() has become 0

 private:
  Base* const base_;
  const Sessions* const sessions_;
  std::map<policy::SessionId, size_t> running_;
  Executor executor_;
};

}  // namespace sluice::optimizer
