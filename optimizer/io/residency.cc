#include "optimizer/io/residency.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include "protocol/page.h"

namespace sluice::optimizer {

using policy::Range;
namespace {

constexpr long kCachestat = 451;  // the same on all architectures; Debian 12's headers lack it
constexpr uint64_t kSampleStep = 1 << 20;
constexpr uint64_t kMostSampled = 8 << 20;
constexpr uint64_t kMincoreStep = 64 << 20;

struct CachestatRange {
  uint64_t offset, length;
};
struct Cachestat {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;  // pages
};

constexpr uint64_t kFinest = 64 << 10;

std::atomic<bool> missing{false};

bool by_cachestat(int fd, Range range, uint64_t* bytes) {
  if (missing.load(std::memory_order_relaxed)) return false;
  // REQUIRES: range not empty; a length of 0 would mean to the end of the file.
  CachestatRange wanted{range.begin, range.length()};
  Cachestat answer{};
  if (syscall(kCachestat, fd, &wanted, &answer, 0) != 0) {
    if (errno == ENOSYS) missing = true;
    return false;
  }
  *bytes = std::min(answer.cached * kPage, range.length());
  return true;
}

// For files that this user neither owns nor may write, mincore reports every page resident.
bool may_use_mincore(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && (info.st_uid == geteuid() || geteuid() == 0);
}

// Adds the resident pages of a mapping of at most kMincoreStep bytes.
bool count_resident(void* map, size_t length, std::vector<unsigned char>* resident,
                    uint64_t* pages) {
  resident->assign((length + kPage - 1) / kPage, 0);
  if (mincore(map, length, resident->data()) != 0) return false;
  *pages += static_cast<uint64_t>(std::count_if(resident->begin(), resident->end(),
                                                [](unsigned char page) { return page & 1; }));
  return true;
}

bool by_mincore(int fd, Range range, uint64_t* bytes) {
  if (!may_use_mincore(fd)) return false;
  uint64_t pages = 0;
  std::vector<unsigned char> resident;
  for (uint64_t at = range.begin / kPage * kPage; at < range.end; at += kMincoreStep) {
    const size_t length = std::min(kMincoreStep, range.end - at);
    void* map = mmap(nullptr, length, PROT_NONE, MAP_SHARED, fd, static_cast<off_t>(at));
    if (map == MAP_FAILED) return false;
    const bool known = count_resident(map, length, &resident, &pages);
    munmap(map, length);
    if (!known) return false;
  }
  *bytes = std::min(pages * kPage, range.length());
  return true;
}

// Reads a byte of some pages with RWF_NOWAIT: needs no privilege, but only local file systems
// support it, and it starts a read of a missing page. So only a few pages are probed, and only in
// small ranges.
bool by_samples(int fd, Range range, uint64_t* bytes) {
  if (range.length() > kMostSampled) return false;
  uint64_t hits = 0, samples = 0;
  for (uint64_t at = range.begin; at < range.end; at += kSampleStep, ++samples) {
    char byte = 0;
    iovec vector{&byte, 1};
    const ssize_t got = preadv2(fd, &vector, 1, static_cast<off_t>(at), RWF_NOWAIT);
    if (got < 0 && errno != EAGAIN) return false;
    hits += got == 1 ? 1 : 0;
  }
  *bytes = range.length() / samples * hits;
  if (hits == samples) *bytes = range.length();
  return true;
}

// Bisects a range that is partly cached: most files are cached as a whole or not at all.
void add_uncached(int fd, Range range, bool no_cachestat, std::vector<Range>* parts) {
  uint64_t cached = 0;
  if (!cached_exactly(fd, range, no_cachestat, &cached) || cached >= range.length()) return;
  if (cached == 0) {
    if (!parts->empty() && parts->back().end == range.begin) {
      parts->back().end = range.end;
    } else {
      parts->push_back(range);
    }
    return;
  }
  if (range.length() <= kFinest) return;
  const uint64_t half = (range.length() / 2 + kFinest - 1) / kFinest * kFinest;
  add_uncached(fd, {range.begin, range.begin + half}, no_cachestat, parts);
  add_uncached(fd, {range.begin + half, range.end}, no_cachestat, parts);
}

}  // namespace

std::vector<Range> uncached_parts(int fd, uint64_t size, bool no_cachestat) {
  std::vector<Range> parts;
  if (size > 0) add_uncached(fd, {0, size}, no_cachestat, &parts);
  return parts;
}

bool cached_bytes(int fd, Range range, bool no_cachestat, uint64_t* bytes) {
  *bytes = 0;
  if (range.length() == 0) return true;
  if (!no_cachestat && by_cachestat(fd, range, bytes)) return true;
  // Refused because another user owns the file: mincore would be refused, too.
  if (!no_cachestat && !missing) return by_samples(fd, range, bytes);
  return by_mincore(fd, range, bytes) || by_samples(fd, range, bytes);
}

bool cached_exactly(int fd, Range range, bool no_cachestat, uint64_t* bytes) {
  *bytes = 0;
  if (range.length() == 0) return true;
  if (!no_cachestat && by_cachestat(fd, range, bytes)) return true;
  return (no_cachestat || missing) && by_mincore(fd, range, bytes);
}

FileResidency::FileResidency(int fd, uint64_t size, bool no_cachestat) : fd_(fd) {
  uint64_t ignored = 0;
  if (!no_cachestat && by_cachestat(fd, {0, 1}, &ignored)) {
    kind_ = Kind::kCachestat;
    return;
  }
  if ((no_cachestat || missing) && size > 0 && may_use_mincore(fd)) {
    void* map = mmap(nullptr, size, PROT_NONE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
      map_ = static_cast<unsigned char*>(map);
      length_ = size;
      kind_ = Kind::kMapped;
      return;
    }
  }
  if (by_samples(fd, {0, 1}, &ignored)) kind_ = Kind::kProbed;
}

FileResidency::~FileResidency() {
  if (map_ != nullptr) munmap(map_, length_);
}

bool FileResidency::exactly(Range range, uint64_t* bytes) const {
  *bytes = 0;
  if (range.length() == 0) return true;
  if (kind_ == Kind::kCachestat) return by_cachestat(fd_, range, bytes);
  if (kind_ != Kind::kMapped) return false;
  uint64_t pages = 0;
  std::vector<unsigned char> resident;
  const uint64_t end = std::min<uint64_t>(range.end, length_);
  for (uint64_t at = range.begin / kPage * kPage; at < end; at += kMincoreStep) {
    const size_t length = std::min(kMincoreStep, end - at);
    if (!count_resident(map_ + at, length, &resident, &pages)) return false;
  }
  *bytes = std::min(pages * kPage, range.length());
  return true;
}

bool FileResidency::cached(Range range, uint64_t* bytes) const {
  if (kind_ != Kind::kProbed) return exactly(range, bytes);
  *bytes = 0;
  return range.length() == 0 || by_samples(fd_, range, bytes);
}

bool has_cachestat() {
  CachestatRange wanted{0, 1};
  Cachestat answer{};
  return syscall(kCachestat, -1, &wanted, &answer, 0) == 0 || errno != ENOSYS;
}

}  // namespace sluice::optimizer
