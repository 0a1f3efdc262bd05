#include "preload/samples/pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>

#include "preload/cells/observed.h"
#include "preload/process.h"
#include "preload/samples/samples.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "preload/sys.h"
#include "protocol/pagemap.h"

namespace sluice::preload {
namespace {

enum PageWatch : uint8_t {
  kNone = 0,
  kInside = 1,   // counted among the threads that are in samples
  kWatched = 2,  // and its pages are looked up when it ends
};

constexpr uint64_t kFreeNs = 5'000'000;  // looking may take as much in any case
constexpr uint64_t kShare = 32;          // and besides, one part in so many of the time
constexpr uint32_t kVain = 64;           // samples of which nothing was found
constexpr uint32_t kMostSkipped = 4096;  // samples, once nothing was found of many
constexpr uint32_t kMostParts = 64;      // of one sample: more are no use to anybody
constexpr size_t kEntries = 1024;        // of the page table, read at once

constinit std::atomic<uint32_t> g_inside{0};  // threads; writers: all
constinit std::atomic<bool> g_alone{false};   // since the watched sample began; writers: all
constinit std::atomic<bool> g_clean{false};   // nothing touched before is mapped; writers: all
constinit std::atomic<bool> g_busy{false};    // a sample is watched; its thread writes what follows
bool g_failed = false;                        // the page table cannot be read
uint64_t g_began_ns = 0;                      // the first sample
uint64_t g_spent_ns = 0;                      // by looking
uint32_t g_parts = 0;                         // of the watched sample
uint32_t g_vain = 0, g_skip = 0, g_skipped = 0;

struct Look {
  int fd;
  uint64_t key;  // of the sample; 0: what is found is nobody's
  bool good;
};

// [begin, end) is mapped: part of the sample, and out of the page table.
bool take(Look& look, const ObservedPart& part, uintptr_t begin, uintptr_t end) {
  if (look.key != 0 && ++g_parts <= kMostParts) {
    emit_part(part.file, part.offset + (begin - part.begin), end - begin, look.key);
  }
  return sys::advise(begin, end - begin, MADV_DONTNEED) == 0;
}

// Linux 6.7 and later. False: this kernel has no such call.
bool scan(Look& look, const ObservedPart& part, bool* clearable) {
  protocol::PageRegion regions[64];
  for (uintptr_t at = part.begin; at < part.end && *clearable;) {
    protocol::PagemapScan asked = {};
    asked.size = sizeof asked;
    asked.start = at;
    asked.end = part.end;
    asked.vec = reinterpret_cast<uint64_t>(regions);
    asked.vec_len = sizeof regions / sizeof *regions;
    asked.category_mask = protocol::kPageIsPresent | protocol::kPageIsFile;
    asked.return_mask = protocol::kPageIsPresent;
    const long count =
        sys::call(SYS_ioctl, look.fd, static_cast<long>(protocol::kPagemapScan), sys::word(&asked));
    if (sys::failed(count)) return false;
    for (long i = 0; i < count && *clearable; ++i) {
      *clearable = take(look, part, regions[i].start, regions[i].end);
    }
    if (asked.walk_end <= at) break;
    at = asked.walk_end;
  }
  return true;
}

bool read_entries(Look& look, const ObservedPart& part, bool* clearable) {
  uint64_t entries[kEntries];
  uintptr_t run = 0;  // where what is mapped begins; 0: what was read last is not
  for (uintptr_t at = part.begin; at < part.end;) {
    const uint64_t left = (part.end - at) / protocol::kPagemapPage;
    const uint64_t pages = left < kEntries ? left : kEntries;
    const long got = sys::call(SYS_pread64, look.fd, sys::word(entries),
                               static_cast<long>(pages * sizeof *entries),
                               static_cast<long>(at / protocol::kPagemapPage * sizeof *entries));
    if (got < static_cast<long>(sizeof *entries)) return false;
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof *entries && *clearable; ++i) {
      const bool mapped =
          (entries[i] & protocol::kEntryPresent) != 0 && (entries[i] & protocol::kEntryFile) != 0;
      if (mapped && run == 0) run = at;
      if (!mapped && run != 0) {
        *clearable = take(look, part, run, at);
        run = 0;
      }
      at += protocol::kPagemapPage;
    }
    if (!*clearable) return true;
  }
  if (run != 0) *clearable = take(look, part, run, part.end);
  return true;
}

bool look_at(void* context, const ObservedPart& part) {
  auto& look = *static_cast<Look*>(context);
  bool clearable = true;
  if (look.good) {
    look.good = scan(look, part, &clearable) || read_entries(look, part, &clearable);
  }
  return clearable;
}

// All that is mapped of observed files is the sample's, and taken out. 0 for `key`: nobody's.
void look_for(uint64_t key) {
  const uint64_t began = sys::now_ns();
  const long fd =
      sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC);
  Look look = {static_cast<int>(fd), key, !sys::failed(fd)};
  if (look.good) {
    ObservedWalk walk = {};
    while (visit_observed(&walk, look_at, &look)) {
    }
    sys::close(look.fd);
  }
  g_failed = !look.good;
  g_clean.store(look.good, std::memory_order_release);
  g_spent_ns += sys::now_ns() - began;
}

// Looking must be worth its time.
bool is_due() {
  if (g_failed) return false;
  const uint64_t now = sys::now_ns();
  if (g_began_ns == 0) g_began_ns = now;
  if (g_spent_ns > kFreeNs + (now - g_began_ns) / kShare) return false;
  if (g_skipped < g_skip) {
    ++g_skipped;
    return false;
  }
  g_skipped = 0;
  return true;
}

void found() {
  if (g_parts != 0) {
    g_vain = g_skip = 0;
  } else if (++g_vain >= kVain) {
    g_skip = g_skip * 2 < kMostSkipped ? g_skip * 2 + 1 : kMostSkipped;
  }
}

void forget_clean() {
  if (g_clean.load(std::memory_order_relaxed)) g_clean.store(false, std::memory_order_release);
}

}  // namespace

void page_watch_begins() {
  t_state.page_watch = kNone;
  if (!any_observed() || in_vfork_child()) return;
  if (!pages_wanted()) {
    forget_clean();
    return;
  }
  t_state.page_watch = kInside;
  if (g_inside.fetch_add(1, std::memory_order_acq_rel) != 0) {
    g_alone.store(false, std::memory_order_release);
    return;
  }
  if (g_busy.exchange(true, std::memory_order_acquire)) return;
  if (!is_due()) {
    forget_clean();
    g_busy.store(false, std::memory_order_release);
    return;
  }
  g_alone.store(true, std::memory_order_release);
  if (!g_clean.load(std::memory_order_acquire)) look_for(0);
  g_parts = 0;
  t_state.page_watch = kWatched;
}

void page_watch_unmaps(const void* address, size_t length) {
  if (t_state.page_watch != kWatched || in_vfork_child()) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  uint32_t file = 0;
  if (!find_observed(begin, begin + length, &file)) return;
  look_for(g_alone.load(std::memory_order_acquire) ? current_sample() : 0);
}

void page_watch_ends() {
  const uint8_t watch = t_state.page_watch;
  t_state.page_watch = kNone;
  if (watch == kNone) return;
  if (watch == kWatched) {
    // What another thread touched meanwhile cannot be told from this one's.
    const bool alone = g_alone.load(std::memory_order_acquire);
    look_for(alone ? current_sample() : 0);
    if (alone) found();
    g_busy.store(false, std::memory_order_release);
  } else {
    forget_clean();  // what it touched is still there
  }
  g_inside.fetch_sub(1, std::memory_order_acq_rel);
}

void page_watch_after_fork() {
  g_inside.store(0, std::memory_order_relaxed);
  g_busy.store(false, std::memory_order_relaxed);
  forget_clean();
  g_spent_ns = 0;
  g_began_ns = 0;
  t_state.page_watch = kNone;
}

}  // namespace sluice::preload
