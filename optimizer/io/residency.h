// How much of an open file is in the page cache, without changing the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/util/interval_set.h"

namespace sluice::optimizer {

// Bytes of `range` that are cached, by cachestat(2) (Linux 6.5). On older kernels, and if
// `no_cachestat`, by mincore(2) on a temporary PROT_NONE mapping. Both work only for files that
// this user owns or may write. For others a few pages of a small range are probed with
// preadv2(RWF_NOWAIT), which local file systems support; it is the last resort because kernels
// since 5.10 begin to read the pages that it finds missing.
//
// Returns false if this cannot be determined. Thread-safe; does not block on storage.
bool cached_bytes(int fd, policy::Range range, bool no_cachestat, uint64_t* bytes);

// The same, but never causes a read: false for files that this user neither owns nor may write.
bool cached_exactly(int fd, policy::Range range, bool no_cachestat, uint64_t* bytes);

// The parts of [0, size) that certainly are not cached, at a granularity of 64 KiB: the
// surroundings of a cached page are left out. Empty if unknown. Thread-safe; reads nothing.
std::vector<policy::Range> uncached_parts(int fd, uint64_t size, bool no_cachestat);

// True if the kernel has cachestat.
bool has_cachestat();

}  // namespace sluice::optimizer
