// Which pages of another process's mapping are mapped: the kernel's PAGEMAP_SCAN (Linux 6.7), or
// plain reads of /proc/PID/pagemap, at sample points where the range is large.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "optimizer/plan/interval_set.h"
#include "optimizer/util/fd.h"

namespace sluice::optimizer {

// The seam for tests. One thread.
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

// Of process `pid`, or nullptr and errno. `no_scan` forces plain reads.
std::unique_ptr<PageTable> open_page_table(uint32_t pid, bool no_scan);

// True if the kernel has PAGEMAP_SCAN.
bool has_pagemap_scan();

}  // namespace sluice::optimizer
