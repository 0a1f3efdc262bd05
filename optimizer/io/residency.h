// What the page cache holds of an open file, without reading and without touching it.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::optimizer {

// Bytes of `range` that are cached, by cachestat(2) (Linux 6.5). Before that, and if
// `no_cachestat`, by mincore(2) on a mapping without any permission that is made for the call.
// Both answer only for files that we own or may write. For others a few pages of a small range
// are tried with preadv2(RWF_NOWAIT), which local file systems understand; it is the last resort
// because kernels since 5.10 begin to read what it finds missing.
//
// Returns false if it cannot be known. Thread-safe; does not block on storage.
bool cached_bytes(int fd, Range range, bool no_cachestat, uint64_t* bytes);

// The same without reading anything in any case: false for files that we neither own nor may write.
bool cached_exactly(int fd, Range range, bool no_cachestat, uint64_t* bytes);

// The parts of [0, size) that surely are not cached, to 64 KiB: what lies beside a cached page is
// left out. Empty where it cannot be known. Thread-safe; reads nothing.
std::vector<Range> uncached_parts(int fd, uint64_t size, bool no_cachestat);

// True if the kernel has cachestat.
bool has_cachestat();

}  // namespace sluice::optimizer
