// Memory: the budget of prefetched and retained data, how it is shared, and which datasets are
// released when what is known of samples takes too much. Core thread only.
#pragma once

#include <cstdint>

#include "optimizer/io/memory.h"
#include "optimizer/services/samples/record_locator.h"
#include "optimizer/services/samples/stored_locations.h"
#include "optimizer/services/service.h"

namespace sluice::optimizer {

class Limits : Service {
 public:
  // `memory`: the budget in bytes; 0: derived from what the host has.
  Limits(const Service& service, uint64_t memory, StoredLocations* stored, RecordLocator* records);

  // Releases datasets until there is room for `more` bytes of samples and orders.
  void relieve(uint64_t more = 0);
  // Gives the stage and the page cache their parts of the budget.
  void share(uint64_t now_ns);
  // The same, and from time to time reads how much memory there is.
  void tick(uint64_t now_ns);

 private:
  void read_memory_limits();

  const uint64_t memory_;
  StoredLocations* const stored_;
  RecordLocator* const records_;
  MemoryReader reader_;
  policy::MemoryShares shares_;
  uint64_t next_update_ns_ = 0;
};

}  // namespace sluice::optimizer
