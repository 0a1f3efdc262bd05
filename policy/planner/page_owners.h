// A reference count for each byte of a file, as disjoint intervals: neighbouring records share
// pages, and windows over a series share nearly all of them. Bytes without an owner take no memory.
// Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

class PageOwners {
 public:
  void add(Range range);
  // Decrements the count of every byte of `range`. REQUIRES: add(range) before.
  void release(Range range);
  // The parts of `range` that have no owner, appended to `parts`.
  void unowned(Range range, std::vector<Range>* parts) const;
  bool empty() const { return pieces_.empty(); }

 private:
  struct Piece {
    uint64_t end = 0;
    uint32_t owners = 0;
  };
  void split(uint64_t at);

  std::map<uint64_t, Piece> pieces_;  // by first byte; owners > 0
};

}  // namespace sluice::policy
