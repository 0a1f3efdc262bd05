#include "optimizer/services/session_threads.h"

#include <exception>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

void SessionThreads::run(policy::SessionId session, uint64_t mount, std::function<void()> work,
                         std::function<void()> done) {
  ++running_[session];
  executor_.run(mount, [this, mailbox = base_->loop.mailbox(), session, work = std::move(work),
                        done = std::move(done)]() mutable {
    try {
      work();
    } catch (const std::exception& error) {
      say(Level::kError, "{}", error.what());
    }
    work = nullptr;
    mailbox->post([this, session, done = std::move(done)] {
      if (--running_[session] == 0) running_.erase(session);
      done();
      if (closing() == 0 && on_all_closed) on_all_closed();
    });
  });
}

size_t SessionThreads::closing() const {
  size_t count = 0;
  for (const auto& [session, pieces] : running_) {
    if (session != policy::kNoSession && sessions_->find(session) == nullptr) count += pieces;
  }
  return count;
}

size_t SessionThreads::running(policy::SessionId session) const {
  const auto at = running_.find(session);
  return at != running_.end() ? at->second : 0;
}

}  // namespace sluice::optimizer
