#include "preload/samples/pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "preload/base/own_descriptor.h"
#include "preload/base/process.h"
#include "preload/base/sys.h"
#include "preload/cells/observed.h"
#include "preload/samples/samples.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "protocol/page.h"
#include "protocol/pagemap.h"

namespace sluice::preload {
namespace {

enum PageWatch : uint8_t {
  kNone = 0,
  kInside = 1,   // counted among the threads that are in samples
  kWatched = 2,  // and the pages that its sample touches are looked up at the end
};

constexpr uint64_t kLongestNs = 5'000'000;  // processor time of one scan, at most
constexpr uint64_t kFreeNs = 5'000'000;     // scans may use this much in any case
constexpr uint64_t kShare = 32;             // and in addition 1/kShare of the elapsed time
constexpr uint64_t kMostNs = 50'000'000;    // unused scan time that may accumulate
constexpr uint64_t kPageNs = 100;           // cost of the next touch of a page that was zapped
constexpr uint32_t kVain = 64;              // samples without a page, before some are skipped
constexpr uint32_t kMostSkipped = 4096;     // samples between two scans, at most
constexpr uint32_t kMostParts = 64;         // of one sample: with more nothing is reported
constexpr size_t kEntries = 1024;           // page-table entries read at once

struct Part {
  uint32_t file;
  uint64_t offset, length;
};

constinit std::atomic<uint32_t> g_inside{0};  // threads; writers: all
constinit std::atomic<bool> g_alone{false};   // since the watched sample began; writers: all
constinit std::atomic<bool> g_busy{false};    // a sample is watched; its thread owns what follows

bool g_looking = false;  // in a scan: a signal handler that unmaps does not start another
bool g_failed = false;   // the page table cannot be read
// Time for scans accrues from g_began_ns on. Time spent is thread CPU time, so time in which other
// threads had the processor during a scan does not count.
uint64_t g_began_ns = 0, g_spent_ns = 0;
uint32_t g_vain = 0, g_skip = 0, g_skipped = 0;
Part g_parts[kMostParts];            // of the watched sample
uint32_t g_part_count = 0;           // kMostParts + 1: too many
protocol::PageRegion g_regions[64];  // what the kernel answers
uint64_t g_entries[kEntries];

struct Look {
  int fd;
  bool wanted;           // pages found belong to the sample
  uintptr_t begin, end;  // the range to scan
  uint64_t pages;        // zapped
  bool good;
};

void add_part(uint32_t file, uint64_t offset, uint64_t length) {
  Part* last =
      g_part_count != 0 && g_part_count <= kMostParts ? &g_parts[g_part_count - 1] : nullptr;
  if (last != nullptr && last->file == file && last->offset + last->length == offset) {
    last->length += length;
    return;
  }
  if (g_part_count < kMostParts) g_parts[g_part_count] = {file, offset, length};
  if (g_part_count <= kMostParts) ++g_part_count;
}

// [begin, end) has page-table entries: records it as part of the sample if wanted, and zaps it.
bool take(Look& look, const ObservedPart& part, uintptr_t begin, uintptr_t end) {
  if (look.wanted) add_part(part.file, part.offset + (begin - part.begin), end - begin);
  look.pages += (end - begin) / kPage;
  return sys::advise(begin, end - begin, MADV_DONTNEED) == 0;
}

// By PAGEMAP_SCAN, Linux 6.7 and later. False: this kernel does not have it.
bool scan(Look& look, const ObservedPart& part, bool* clearable) {
  for (uintptr_t at = part.begin; at < part.end && *clearable;) {
    protocol::PagemapScan asked = {};
    asked.size = sizeof asked;
    asked.start = at;
    asked.end = part.end;
    asked.vec = reinterpret_cast<uint64_t>(g_regions);
    asked.vec_len = sizeof g_regions / sizeof *g_regions;
    asked.category_mask = protocol::kPageIsPresent | protocol::kPageIsFile;
    asked.return_mask = protocol::kPageIsPresent;
    const long count =
        sys::call(SYS_ioctl, look.fd, static_cast<long>(protocol::kPagemapScan), sys::word(&asked));
    if (sys::failed(count)) return false;
    for (long i = 0; i < count && *clearable; ++i) {
      *clearable = take(look, part, g_regions[i].start, g_regions[i].end);
    }
    if (asked.walk_end <= at) break;
    at = asked.walk_end;
  }
  return true;
}

bool read_entries(Look& look, const ObservedPart& part, bool* clearable) {
  uintptr_t run = 0;  // start of the current run of present pages; 0: none
  for (uintptr_t at = part.begin; at < part.end;) {
    const uint64_t left = (part.end - at) / kPage;
    const uint64_t pages = left < kEntries ? left : kEntries;
    const long got = sys::call(SYS_pread64, look.fd, sys::word(g_entries),
                               static_cast<long>(pages * sizeof *g_entries),
                               static_cast<long>(at / kPage * sizeof *g_entries));
    if (got < static_cast<long>(sizeof *g_entries)) return false;
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof *g_entries && *clearable; ++i) {
      const bool mapped = (g_entries[i] & protocol::kEntryPresent) != 0 &&
                          (g_entries[i] & protocol::kEntryFile) != 0;
      if (mapped && run == 0) run = at;
      if (!mapped && run != 0) {
        *clearable = take(look, part, run, at);
        run = 0;
      }
      at += kPage;
    }
    if (!*clearable) return true;
  }
  if (run != 0) *clearable = take(look, part, run, part.end);
  return true;
}

bool look_at(void* context, const ObservedPart& whole) {
  auto& look = *static_cast<Look*>(context);
  ObservedPart part = whole;
  if (part.begin < look.begin) {
    part.offset += look.begin - part.begin;
    part.begin = look.begin;
  }
  if (part.end > look.end) part.end = look.end;
  bool clearable = true;
  if (look.good && part.begin < part.end) {
    look.good = scan(look, part, &clearable) || read_entries(look, part, &clearable);
  }
  return clearable;
}

void report_parts() {
  const uint64_t key = current_sample();
  for (uint32_t i = 0; i < g_part_count && g_part_count <= kMostParts && key != 0; ++i) {
    emit_part(g_parts[i].file, g_parts[i].offset, g_parts[i].length, key);
  }
}

// Zaps the page-table entries of observed files within [begin, end), and records them as the
// sample's if `wanted`. False: the scan did not reach the end.
bool look_for(bool wanted, uintptr_t begin = 0, uintptr_t end = UINTPTR_MAX) {
  if (g_looking) return false;
  g_looking = true;
  const uint64_t began = sys::thread_cpu_ns();
  uint64_t now = began;
  bool all = false;
  Look look = {-1, wanted, begin, end, 0, true};
  {
    const OwnDescriptor file(
        sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC));
    look.fd = file.number();
    const bool busy = look.fd == -EMFILE || look.fd == -ENFILE;  // for now
    look.good = look.fd >= 0;
    ObservedWalk walk = {};
    while (look.good && now - began < kLongestNs && file.ours()) {
      if (!visit_observed(&walk, look_at, &look)) {
        all = look.good;
        break;
      }
      now = sys::thread_cpu_ns();
    }
    g_failed = !look.good && !busy;
  }
  // A scan that takes that long is not worth its time.
  if (now - began >= kLongestNs) g_skip = kMostSkipped;
  g_spent_ns += sys::thread_cpu_ns() - began + look.pages * kPageNs;
  g_looking = false;
  return all;
}

bool has_time() {
  const uint64_t now = sys::now_ns();
  if (g_began_ns == 0) g_began_ns = now;
  const uint64_t earned = kFreeNs + (now - g_began_ns) / kShare;
  if (earned > g_spent_ns + kMostNs) {
    g_began_ns = now;
    g_spent_ns = 0;
  }
  return earned > g_spent_ns;
}

// Whether to scan for this sample: within the time budget, and rarely if scans find nothing.
bool is_due() {
  if (g_failed || !has_time()) return false;
  if (g_skipped < g_skip) {
    ++g_skipped;
    return false;
  }
  g_skipped = 0;
  return true;
}

void found(bool any) {
  if (any) {
    g_vain = g_skip = 0;
  } else if (++g_vain >= kVain) {
    g_skip = g_skip * 2 < kMostSkipped ? g_skip * 2 + 1 : kMostSkipped;
  }
}

}  // namespace

void page_watch_begins() {
  if (t_state.samples_begun != 1) {
    // With several samples at a time, a page cannot be attributed to one.
    if (t_state.page_watch == kWatched) g_alone.store(false);
    return;
  }
  t_state.page_watch = kNone;
  if (!any_observed() || !pages_wanted() || in_vfork_child()) return;
  t_state.page_watch = kInside;
  if (g_inside.fetch_add(1) != 0) {
    g_alone.store(false);
    return;
  }
  if (g_busy.exchange(true)) return;
  if (!is_due()) {
    g_busy.store(false);
    return;
  }
  g_alone.store(true);
  // A thread that entered in between may have cleared g_alone before it was set.
  if (g_inside.load() != 1) g_alone.store(false);
  g_part_count = 0;
  // Pages that were touched before belong to no sample.
  if (!look_for(false)) g_alone.store(false);
  t_state.page_watch = kWatched;
}

void page_watch_ends() {
  if (t_state.samples_begun != 1 || t_state.page_watch == kNone) return;
  if (process_is_new()) process_after_fork();
  const uint8_t watch = t_state.page_watch;
  t_state.page_watch = kNone;
  if (watch == kNone) return;
  if (watch == kWatched) {
    // Pages that another thread's sample touched meanwhile cannot be distinguished from this one's.
    const bool all = g_alone.load() && look_for(true) && g_alone.load();
    if (all) report_parts();
    found(all && g_part_count != 0);
    g_busy.store(false);
  }
  g_inside.fetch_sub(1);
}

void page_watch_unmaps(const void* address, size_t length) {
  if (t_state.page_watch != kWatched || !g_alone.load()) return;
  if (process_is_new()) process_after_fork();
  const auto begin = reinterpret_cast<uintptr_t>(address);
  uint32_t file = 0;
  if (t_state.page_watch != kWatched || in_vfork_child() || t_state.samples_begun != 1 ||
      !find_observed(begin, begin + length, &file)) {
    return;
  }
  if (!has_time() || !look_for(true, begin, begin + length)) g_alone.store(false);
}

void page_watch_after_fork() {
  g_inside.store(0);
  g_busy.store(false);
  g_looking = false;
  g_failed = false;
  g_spent_ns = 0;
  g_began_ns = 0;
  t_state.page_watch = kNone;
}

}  // namespace sluice::preload
