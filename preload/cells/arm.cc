#include "preload/cells/arm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "preload/base/backoff.h"
#include "preload/base/keep_errno.h"
#include "preload/base/log.h"
#include "preload/base/process.h"
#include "preload/cells/observed.h"
#include "preload/cells/renew.h"
#include "preload/data/datasets.h"
#include "preload/handler/actions.h"
#include "preload/handler/mapping.h"
#include "preload/handler/transition_inside.h"
#include "preload/session/client.h"
#include "preload/session/events.h"
#include "protocol/page.h"

namespace sluice::preload {
namespace {

using protocol::CheckpointMode;
using protocol::ClientMetric;
constexpr uint64_t kDefaultDistance = 4 << 20;      // bytes; a cell of LMDB data
constexpr uint64_t kDefaultPageDistance = 8 << 20;  // datasupply, Figure 8
constexpr uint64_t kLmdbMetaBytes = 2 * kPage;      // pages 0 and 1
constexpr uint32_t kMaxCells = 1 << 20;
constexpr uint32_t kUsualVmaLimit = 65530;
constexpr uint32_t kVmaShare = 8;  // of vm.max_map_count, for re-armed pages

constinit std::atomic<bool> g_future_locked{false};
constinit std::atomic<bool> g_only_observe{false};
constinit std::atomic<uint32_t> g_vmas_promised{0};

uint32_t vma_budget() {
  uint32_t limit = kUsualVmaLimit;
  char text[32] = {};
  const long fd = sys::call(SYS_openat, AT_FDCWD, sys::word("/proc/sys/vm/max_map_count"),
                            O_RDONLY | O_CLOEXEC);
  if (!sys::failed(fd)) {
    if (sys::call(SYS_read, fd, sys::word(text), sizeof text - 1) > 0) {
      limit = static_cast<uint32_t>(strtoul(text, nullptr, 10));
    }
    sys::close(static_cast<int>(fd));
  }
  return limit / kVmaShare;
}

// Whether this mapping supports guard regions: file mappings do since Linux 6.15.
bool takes_guards(uintptr_t base) {
  return g_settings.guard_regions && sys::advise(base, kPage, sys::kGuardInstall) == 0 &&
         sys::advise(base, kPage, sys::kGuardRemove) == 0;
}

Rearm choose_rearm(const Mapping& mapping, bool drop_behind, bool guards) {
  if (drop_behind && mapping.shared && !mapping.page_mode) return Rearm::kWholeCell;
  if (guards) return Rearm::kGuardPage;
  const uint32_t wanted = 2 * mapping.cell_count;
  if (g_vmas_promised.fetch_add(wanted) + wanted <= vma_budget()) return Rearm::kProtectPage;
  g_vmas_promised.fetch_sub(wanted);
  return Rearm::kNothing;
}

// Page mode: protects one page per distance. False if the kernel refuses; all pages are accessible
// then.
bool protect_pages(Mapping& mapping, bool guards) {
  for (uint32_t cell = 0; cell < mapping.cell_count; ++cell) {
    const uintptr_t start = mapping.cell_start(cell);
    const long result = guards ? sys::advise(start, kPage, sys::kGuardInstall)
                               : sys::protect(start, kPage, PROT_NONE);
    if (result != 0) {
      open_whole(mapping);
      return false;
    }
    mapping.cells[cell].finish(CellState::kGuarded);
  }
  return true;
}

struct Request {
  uintptr_t base;
  uintptr_t end;
  uint64_t offset;
  int prot;
  bool shared;
  bool page_mode;
  FollowedFile file;
};

uint64_t choose_distance(const Request& request) {
  uint64_t distance = g_settings.distance;
  if (distance == 0 && request.page_mode) distance = kDefaultPageDistance;
  if (distance == 0) distance = request.file.distance & ~uint64_t{kPage - 1};
  if (distance == 0) distance = kDefaultDistance;
  while ((request.end - request.base) / distance >= kMaxCells) distance *= 2;
  return distance;
}

bool arm(const Request& request) {
  const Taken taken = install_fault_handler();
  if (taken == Taken::kBlocked) {
    count(ClientMetric::passed_unprotectable);
    return false;
  }
  if (taken == Taken::kLost) {
    say(LogLevel::kWarn, "the SIGSEGV action was taken over; a mapping is passed through");
    count(ClientMetric::passed_lost_handler);
    return false;
  }
  const bool guards = takes_guards(request.base);
  Locked locked(g_registry_lock);
  Mapping* mapping = take_entry();
  if (mapping == nullptr) return false;
  mapping->base.store(request.base, std::memory_order_relaxed);
  mapping->end.store(request.end, std::memory_order_relaxed);
  mapping->file_offset = request.offset;
  mapping->file.store(request.file.file, std::memory_order_relaxed);
  mapping->prot = request.prot;
  mapping->shared = request.shared;
  mapping->page_mode = request.page_mode;
  mapping->guards = guards;
  mapping->distance = choose_distance(request);
  const size_t length = request.end - request.base;
  mapping->cell_count = static_cast<uint32_t>((length + mapping->distance - 1) / mapping->distance);
  mapping->cells_bytes = (mapping->cell_count * sizeof(Cell) + kPage - 1) & ~(kPage - 1);
  const long cells = sys::call(SYS_mmap, 0, static_cast<long>(mapping->cells_bytes),
                               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sys::failed(cells)) {
    count(ClientMetric::passed_vma_limit);
    return false;
  }
  mapping->cells = reinterpret_cast<Cell*>(cells);
  const bool drop = (request.file.flags & protocol::kFileDropBehind) != 0;
  mapping->rearm.store(choose_rearm(*mapping, drop, guards));
  const bool protected_now = request.page_mode ? protect_pages(*mapping, guards)
                                               : sys::protect(request.base, length, PROT_NONE) == 0;
  if (!protected_now) {
    sys::call(SYS_munmap, cells, static_cast<long>(mapping->cells_bytes));
    count(ClientMetric::passed_vma_limit);
    return false;
  }
  publish(*mapping);
  count(ClientMetric::mappings_armed);
  return true;
}

// Waits for transitions that began before rearm was kNothing, opens the mapping and removes it from
// the registry. REQUIRES: g_registry_lock.
void disarm_one(Mapping& mapping) {
  mapping.rearm.store(Rearm::kNothing, std::memory_order_seq_cst);
  Backoff backoff;
  while (mapping.transitions.load(std::memory_order_seq_cst) != 0) {
    backoff.wait();
  }
  open_whole(mapping);
  count(ClientMetric::mappings_opened);
  emit_unmapped(mapping.file.load(std::memory_order_relaxed),
                mapping.base.load(std::memory_order_relaxed));
  withdraw(mapping);
}

uintptr_t end_of(const void* address, size_t length) {
  uintptr_t end = 0;
  const bool over = __builtin_add_overflow(reinterpret_cast<uintptr_t>(address), length, &end);
  return over ? UINTPTR_MAX : end;
}

template <typename Action>
void for_each_in(const void* address, size_t length, Action action) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = end_of(address, length);
  if (!maybe_protected(begin, end) || in_vfork_child()) return;
  if (process_is_new()) process_after_fork();
  const KeepErrno keep;
  Locked locked(g_registry_lock);
  for (uint32_t i = 0; i < kMaxMappings; ++i) {
    Mapping& mapping = registry()[i];
    if (mapping.live.load(std::memory_order_relaxed) != 0 &&
        begin < mapping.end.load(std::memory_order_relaxed) &&
        end > mapping.base.load(std::memory_order_relaxed)) {
      action(mapping);
    }
  }
}

// Prefetches the page that every reader of an LMDB file touches first and that no stream reaches.
// Without this its first touch would read a whole read-ahead window around it.
void want_root(int fd, const DataFile& data) {
  if (data.wanted_bytes == 0 || !g_settings.prefetch) return;
  sys::call(SYS_fadvise64, fd, static_cast<long>(data.first_wanted),
            static_cast<long>(data.wanted_bytes), POSIX_FADV_WILLNEED);
}

bool protectable(int prot, int flags) {
  return prot == PROT_READ && (flags & (MAP_POPULATE | MAP_LOCKED)) == 0 &&
         !g_future_locked.load(std::memory_order_relaxed);
}

}  // namespace

void consider_mapping(void* address, size_t length, int prot, int flags, int fd, off_t offset) {
  if (g_settings.off || length < kSmallestMapping || (prot & PROT_READ) == 0) return;
  const KeepErrno keep;
  struct stat about;
  if (sys::call(SYS_fstat, fd, sys::word(&about)) != 0 || !S_ISREG(about.st_mode)) return;
  if (offset < 0 || offset >= about.st_size) return;
  DataFile data;
  if (!recognise(fd, about, true, &data) || in_vfork_child()) return;
  CheckpointMode mode = g_settings.checkpoint;
  if (g_settings.checkpoint_auto) {
    mode = data.lmdb ? CheckpointMode::kCell : CheckpointMode::kObserve;
  }
  if (mode == CheckpointMode::kOff) return;
  if (g_only_observe.load(std::memory_order_relaxed)) mode = CheckpointMode::kObserve;
  if (mode != CheckpointMode::kObserve && can_take_segv() == Taken::kBlocked) {
    say(LogLevel::kInfo, "another thread blocks SIGSEGV; a mapping is observed");
    mode = CheckpointMode::kObserve;
  }
  if (process_is_new()) process_after_fork();
  Request request = {};
  want_root(fd, data);
  if (!follow_file(fd, about, data.path, true, mode, &request.file)) return;
  renewal_wanted();
  const uint64_t in_file = static_cast<uint64_t>(about.st_size - offset);
  const uint64_t used = length < in_file ? length : in_file;
  // LMDB's meta pages are touched by every transaction and do not show where it reads.
  const uint64_t skipped = data.lmdb && offset == 0 ? kLmdbMetaBytes : 0;
  request.base = reinterpret_cast<uintptr_t>(address) + skipped;
  request.end = request.base - skipped + ((used + kPage - 1) & ~uint64_t{kPage - 1});
  request.offset = static_cast<uint64_t>(offset) + skipped;
  request.prot = prot;
  request.shared = (flags & MAP_TYPE) != MAP_PRIVATE;
  request.page_mode = mode == CheckpointMode::kPage;
  if (mode == CheckpointMode::kObserve) {
    // Not watched: mappings that a library may change by calls that no hook sees, and LMDB's, since
    // its values are recorded when LMDB returns them.
    const bool shared =
        request.shared && (prot & PROT_WRITE) == 0 && (flags & (MAP_POPULATE | MAP_LOCKED)) == 0;
    const bool watched = !data.lmdb && !g_only_observe.load(std::memory_order_relaxed);
    const Entries entries = !shared   ? Entries::kStay
                            : watched ? Entries::kWatched
                                      : Entries::kShared;
    observe_mapping(request.file.file, request.offset, request.base, request.end, entries);
    return;
  }
  if (!protectable(prot, flags)) {
    count(ClientMetric::passed_unprotectable);
    return;
  }
  if (arm(request)) {
    emit_mapped(request.file.file, request.offset, request.end - request.base, request.base, 0);
  }
}

void disarm(const void* address, size_t length) {
  forget_observed(reinterpret_cast<uintptr_t>(address), end_of(address, length));
  for_each_in(address, length, [](Mapping& mapping) { disarm_one(mapping); });
}

void note_advice(const void* address, size_t length, int advice) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = end_of(address, length);
  const KeepErrno keep;
  advise_observed(begin, end, advice);
  for_each_in(address, length, [&](Mapping& mapping) {
    const uintptr_t base = mapping.base.load(std::memory_order_relaxed);
    const uintptr_t stop = mapping.end.load(std::memory_order_relaxed);
    const bool by_page = advice == MADV_RANDOM;
    if (begin > base || end < stop || mapping.by_page.exchange(by_page) == by_page) return;
    emit_mapped(mapping.file.load(std::memory_order_relaxed), mapping.file_offset, stop - base,
                base, by_page ? protocol::kFlagByPage : 0);
  });
}

void forget_stale(const void* address, size_t length) {
  forget_observed(reinterpret_cast<uintptr_t>(address), end_of(address, length));
  for_each_in(address, length, [](Mapping& mapping) {
    emit_unmapped(mapping.file.load(std::memory_order_relaxed),
                  mapping.base.load(std::memory_order_relaxed));
    withdraw(mapping);
  });
}

bool disarm_all() {
  if (g_high.load(std::memory_order_relaxed) == 0) return false;
  disarm(nullptr, SIZE_MAX);
  return true;
}

bool checkpoints_end() {
  if (g_settings.off || g_only_observe.exchange(true)) return false;
  disarm_all();
  return true;
}

void set_future_locked(bool locked) { g_future_locked.store(locked); }

}  // namespace sluice::preload
