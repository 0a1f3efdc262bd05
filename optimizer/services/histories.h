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
  // The session whose history counts samples of the dataset that `session` reads.
  Session& owner(Session& session, policy::DatasetId dataset) const;
  // A sample of it begins: the same session, which enters the epoch of its order. Not when one
  // ends: the order of the next epoch may have been published before the last sample of this one
  // ends.
  Session& enter_epoch(Session& session, policy::DatasetId dataset, uint64_t now_ns);

 private:
  void note_streamed(Session& session, uint64_t now_ns);
  void enter(Session& session, uint64_t epoch, uint64_t now_ns);
};

}  // namespace sluice::optimizer
