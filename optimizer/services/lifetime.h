// When the optimizer ends, and which jobs wait for it to close their files. Core thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/daemon/seat.h"
#include "optimizer/services/scans.h"
#include "optimizer/services/service.h"
#include "optimizer/services/starts.h"

namespace sluice::optimizer {

class Lifetime : Service {
 public:
  // All outlive this.
  Lifetime(const Service& service, Seat* seat, Scans* scans, Starts* starts, Openings* openings);

  void handle(const Peer& peer, const StopMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const ByeMessage& message, std::vector<UniqueFd> fds);
  // Answers those that wait, once every file and trace is closed; `all`: at once.
  void answer(bool all);
  // Several times a second: answers those that have waited for too long, and stops the loop once no
  // session has existed for the linger time.
  void tick(uint64_t now_ns);
  void stop_listening() { seat_->stop_listening(); }
  // The longest wait for the next event, in ns.
  uint64_t patience_ns() const;
  // How much holds mounts for sessions that have ended: files, threads.
  size_t closing() const {
    return files_->closing() + recordings_->unsettled() + scans_->closing() +
           starts_->threads().closing() + openings_->threads().opening.closing() +
           openings_->threads().closing.closing();
  }

 private:
  struct Waiter {
    uint64_t connection = 0, deadline_ns = 0;
  };

  Seat* const seat_;
  Scans* const scans_;
  Starts* const starts_;
  Openings* const openings_;
  std::vector<Waiter> waiters_;
  uint64_t idle_since_ns_;
};

}  // namespace sluice::optimizer
