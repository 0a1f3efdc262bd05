// Which pages of a mapping are mapped: the interface between the observers of mappings and the
// kernel, for which tests substitute a table of their own. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::policy {

class PageTable {
 public:
  PageTable() = default;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;
  virtual ~PageTable() = default;
  // Appends the mapped parts of [begin, end), addresses, in order. False: the process has ended or
  // must not be observed.
  virtual bool present(uint64_t begin, uint64_t end, std::vector<Range>* out) = 0;
};

}  // namespace sluice::policy
