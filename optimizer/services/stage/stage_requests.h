// Jobs' requests about the stage, and the predictions from which it and retention are planned. Core
// thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/services/importance.h"
#include "optimizer/services/limits.h"
#include "optimizer/services/service.h"

namespace sluice::optimizer {

class StageRequests : Service {
 public:
  StageRequests(const Service& service, Importance* importance, Limits* limits);

  void handle(const Peer& peer, const StageMessage& message, std::vector<UniqueFd> fds);
  void handle(const Peer& peer, const SettleMessage& message, std::vector<UniqueFd> fds);
  // Predicts uses from orders. Orders arrive in pieces: it runs a few times a second rather than
  // for each piece, and less often for long orders, to leave most of the time for fetching.
  void predict(uint64_t now_ns);

 private:
  void use_disk(const SessionOptions& options);
  void use_chunks(const SessionOptions& options);

  Importance* const importance_;
  Limits* const limits_;
  uint64_t next_prediction_ns_ = 0, next_turn_ns_ = 0;
  bool began_ = false;  // an epoch, for which nothing was predicted yet
  bool warned_no_stage_ = false, warned_no_log_ = false, warned_no_chunks_ = false;
};

}  // namespace sluice::optimizer
