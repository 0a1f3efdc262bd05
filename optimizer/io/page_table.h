// Which pages of another process's mapping are mapped: the kernel's PAGEMAP_SCAN (Linux 6.7), or
// plain reads of /proc/PID/pagemap, at sample points where the range is large.
#pragma once

#include <cstdint>
#include <memory>

#include "policy/streams/page_table.h"

namespace sluice::optimizer {

// Of process `pid`, or nullptr and errno. `no_scan` forces plain reads.
std::unique_ptr<PageTable> open_page_table(uint32_t pid, bool no_scan);

// True if the kernel has PAGEMAP_SCAN.
bool has_pagemap_scan();

}  // namespace sluice::optimizer
