#include "optimizer/io/page_table.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "protocol/page.h"
#include "protocol/pagemap.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::PageTable;
using policy::Range;
namespace {
constexpr uint64_t kFaultAround = 64 << 10;  // most bytes that one fault maps
constexpr size_t kReadPages = 2048;          // entries of one read: 8 MiB of mapping
constexpr uint64_t kMaxSamples = 2048;       // pages probed by one scan without PAGEMAP_SCAN

void append(std::vector<Range>* out, Range range) {
  if (!out->empty() && out->back().end == range.begin) {
    out->back().end = range.end;
  } else {
    out->push_back(range);
  }
}

bool scan(int fd, uint64_t begin, uint64_t end, std::vector<Range>* out) {
  protocol::PageRegion regions[128];
  while (begin < end) {
    protocol::PagemapScan arguments{};
    arguments.size = sizeof arguments;
    arguments.start = begin;
    arguments.end = end;
    arguments.vec = reinterpret_cast<uint64_t>(regions);
    arguments.vec_len = std::size(regions);
    arguments.category_mask = protocol::kPageIsPresent;
    arguments.return_mask = protocol::kPageIsPresent;
    const int count = ioctl(fd, protocol::kPagemapScan, &arguments);
    if (count < 0) return false;
    for (int i = 0; i < count; ++i) append(out, {regions[i].start, regions[i].end});
    if (arguments.walk_end <= begin) break;
    begin = arguments.walk_end;
  }
  return true;
}

bool read_all(int fd, uint64_t begin, uint64_t end, std::vector<Range>* out) {
  uint64_t entries[kReadPages];
  for (uint64_t at = begin; at < end;) {
    const size_t pages = std::min<uint64_t>(kReadPages, (end - at + kPage - 1) / kPage);
    const ssize_t got = pread(fd, entries, pages * sizeof entries[0],
                              static_cast<off_t>(at / kPage * sizeof entries[0]));
    if (got <= 0) return got == 0;
    const size_t known = static_cast<size_t>(got) / sizeof entries[0];
    for (size_t i = 0; i < known; ++i, at += kPage) {
      if ((entries[i] & protocol::kEntryPresent) != 0) append(out, {at, at + kPage});
    }
  }
  return true;
}

// Probes one page per step: finds where mapped regions begin, not everything that is mapped.
bool sample(int fd, uint64_t begin, uint64_t end, std::vector<Range>* out) {
  const uint64_t step =
      std::max(kFaultAround, ((end - begin) / kMaxSamples + kPage - 1) / kPage * kPage);
  for (uint64_t at = begin; at < end; at += step) {
    uint64_t entry = 0;
    const ssize_t got =
        pread(fd, &entry, sizeof entry, static_cast<off_t>(at / kPage * sizeof entry));
    if (got != sizeof entry) return got == 0;
    if ((entry & protocol::kEntryPresent) == 0) continue;
    // Around a mapped page all entries are read.
    const uint64_t low = at - std::min(at - begin, kFaultAround);
    if (!read_all(fd, low, std::min(at + kFaultAround, end), out)) return false;
  }
  return true;
}

class ProcPageTable : public PageTable {
 public:
  ProcPageTable(UniqueFd fd, bool no_scan) : fd_(std::move(fd)), no_scan_(no_scan) {}

  bool present(uint64_t begin, uint64_t end, std::vector<Range>* out) override {
    if (!no_scan_) {
      if (scan(fd_.get(), begin, end, out)) return true;
      if (errno != ENOTTY && errno != EINVAL) return false;
      no_scan_ = true;  // an older kernel
    }
    if (end - begin <= kReadPages * kPage * 4) return read_all(fd_.get(), begin, end, out);
    return sample(fd_.get(), begin, end, out);
  }

 private:
  const UniqueFd fd_;
  bool no_scan_;
};

UniqueFd open_pagemap(uint32_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/pagemap";
  return UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

std::unique_ptr<PageTable> open_page_table(uint32_t pid, bool no_scan) {
  UniqueFd fd = open_pagemap(pid);
  if (!fd) return nullptr;
  return std::make_unique<ProcPageTable>(std::move(fd), no_scan);
}

bool has_pagemap_scan() {
  const UniqueFd fd = open_pagemap(static_cast<uint32_t>(getpid()));
  std::vector<Range> ignored;
  return fd && scan(fd.get(), 0, kPage, &ignored);
}

}  // namespace sluice::optimizer
