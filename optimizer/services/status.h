// What `sluice status` shows. Core thread only.
#pragma once

#include <string>

#include "optimizer/services/samples/chunk_deliveries.h"
#include "optimizer/services/streams/transfers.h"

namespace sluice::optimizer {

class Status : Service {
 public:
  // All outlive this. `socket`: the path that the optimizer listens on.
  Status(const Service& service, const std::string& socket, const Transfers* transfers,
         const ChunkDeliveries* chunks);

  void handle(const Peer& peer, const StatusMessage& message, std::vector<UniqueFd> fds);

 private:
  std::string text() const;  // JSON

  const std::string socket_;
  const Transfers* const transfers_;
  const ChunkDeliveries* const chunks_;
  const uint64_t started_ns_ = now_ns();
};

}  // namespace sluice::optimizer
