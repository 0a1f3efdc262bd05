// Finds which pages of another process's mapping are mapped: by PAGEMAP_SCAN (Linux 6.7), or by
// plain reads of /proc/PID/pagemap, which probe a large range only at intervals.
#pragma once

#include <cstdint>
#include <memory>

#include "policy/streams/page_table.h"

namespace sluice::optimizer {

// The page table of process `pid`, or nullptr and errno. `no_scan` forces plain reads.
std::unique_ptr<policy::PageTable> open_page_table(uint32_t pid, bool no_scan);

// True if the kernel has PAGEMAP_SCAN.
bool has_pagemap_scan();

}  // namespace sluice::optimizer
