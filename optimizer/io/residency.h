// How much of an open file is in the page cache, without changing the cache.
#pragma once

#include <cstddef>
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
// Returns false if this cannot be determined. Thread-safe. Does not wait for storage where the
// kernel has cachestat; else a network file system may ask its server for the file's attributes if
// they are old, in mmap(2) even while it holds this process's address space: call it when the file
// was just opened, and FileResidency later.
bool cached_bytes(int fd, policy::Range range, bool no_cachestat, uint64_t* bytes);

// The same, but never causes a read: false for files that this user neither owns nor may write.
bool cached_exactly(int fd, policy::Range range, bool no_cachestat, uint64_t* bytes);

// The parts of [0, size) that certainly are not cached, at a granularity of 64 KiB: the
// surroundings of a cached page are left out. Empty if unknown. Thread-safe; reads nothing.
std::vector<policy::Range> uncached_parts(int fd, uint64_t size, bool no_cachestat);

// The same of one open file, to be asked at any time: never waits for the file's server.
class FileResidency {
 public:
  FileResidency() = default;  // nothing is known
  // `fd`, of `size` bytes, was opened just now, and outlives this. Where the kernel has no
  // cachestat the file is mapped as long as this exists.
  FileResidency(int fd, uint64_t size, bool no_cachestat);
  ~FileResidency();
  FileResidency(const FileResidency&) = delete;
  FileResidency& operator=(const FileResidency&) = delete;

  // Thread-safe. As cached_bytes() and cached_exactly().
  bool cached(policy::Range range, uint64_t* bytes) const;
  bool exactly(policy::Range range, uint64_t* bytes) const;
  // Whether these can be determined.
  bool known() const { return kind_ != Kind::kUnknown; }
  bool exact() const { return kind_ == Kind::kCachestat || kind_ == Kind::kMapped; }

 private:
  enum class Kind : uint8_t { kUnknown, kCachestat, kMapped, kProbed };

  Kind kind_ = Kind::kUnknown;
  int fd_ = -1;
  unsigned char* map_ = nullptr;
  size_t length_ = 0;
};

// True if the kernel has cachestat.
bool has_cachestat();

}  // namespace sluice::optimizer
