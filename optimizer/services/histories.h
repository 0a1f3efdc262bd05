// Fills the histories of sessions, the data of `sluice report`. Core thread only.
#pragma once

#include <cstdint>

#include "optimizer/services/service.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class Histories : Service {
 public:
  explicit Histories(const Service& service) : Service(service) {}

  // Adds a point to each history for which one is due.
  void record(uint64_t now_ns);
  void add_point(Session& session, uint64_t now_ns);
  // Called after an access: enters a new epoch if a pass over a file begins with it.
  void note_pass(Session& session, uint64_t now_ns);
  // The session whose history counts samples of the dataset that `session` reads. Enters the epoch
  // of its order.
  Session& owner_of_epoch(Session& session, policy::DatasetId dataset, uint64_t now_ns);

 private:
  void note_streamed(Session& session, uint64_t now_ns);
  void enter(Session& session, uint64_t epoch, uint64_t now_ns);
};

}  // namespace sluice::optimizer
