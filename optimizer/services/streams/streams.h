// Files that jobs read or map from one end to the other: requests to follow them, events of their
// readers, and mappings that are observed by their page tables. Core thread only.
#pragma once

#include "optimizer/services/histories.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Streams : Service {
 public:
  // All outlive this.
  Streams(const Service& service, Histories* histories);

  void handle(const Peer& peer, const FileMessage& message, std::vector<UniqueFd> fds);
  // REQUIRES: the event is not one of a sample. False: it is invalid.
  bool on_event(Session& session, const TakenEvent& event, uint64_t now_ns);
  // Looks at the observed mappings that are due.
  void observe(uint64_t now_ns);
  static void remove_process(Session& session, uint32_t slot, uint32_t pid);

 private:
  void on_mapped(Session& session, const TakenEvent& event, uint64_t now_ns);
  uint64_t next_observation_ns() const;
  void count_waits(Session& session, uint32_t pid);
  void log_event(const char* kind, policy::SessionId session, const TakenEvent& event) const;

  Histories* const histories_;
};

}  // namespace sluice::optimizer
