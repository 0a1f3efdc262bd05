// Which pages of a mapping are mapped. The seam between who follows a mapping and the kernel, which
// tests put a table of their own into. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::optimizer {

class PageTable {
 public:
  PageTable() = default;
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;
  virtual ~PageTable() = default;
  // Appends the mapped parts of [begin, end), addresses, in order. False: the process is gone or
  // will not be looked at.
  virtual bool present(uint64_t begin, uint64_t end, std::vector<Range>* out) = 0;
};

}  // namespace sluice::optimizer
