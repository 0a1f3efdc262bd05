// Reached from the fault handler (find_mapping, MappingRef::release): loads, compare-and-swaps
// and at most one munmap. No lock: only writers take the registry's lock.
#include "preload/handler/mapping.h"

#include "preload/base/sys.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {
namespace {

constinit Mapping g_mappings[kMaxMappings];

void free_cells(Mapping& mapping) {
  sys::call(SYS_munmap, sys::word(mapping.cells), static_cast<long>(mapping.cells_bytes));
}

// REQUIRES: g_registry_lock.
void update_bounds() {
  uintptr_t low = UINTPTR_MAX;
  uintptr_t high = 0;
  for (const Mapping& mapping : g_mappings) {
    if (mapping.live.load(std::memory_order_relaxed) == 0) continue;
    const uintptr_t base = mapping.base.load(std::memory_order_relaxed);
    const uintptr_t end = mapping.end.load(std::memory_order_relaxed);
    if (base < low) low = base;
    if (end > high) high = end;
  }
  g_low.store(low, std::memory_order_relaxed);
  g_high.store(high, std::memory_order_relaxed);
}

}  // namespace

constinit Spinlock g_registry_lock;
constinit std::atomic<uintptr_t> g_low{UINTPTR_MAX};
constinit std::atomic<uintptr_t> g_high{0};
constinit std::atomic<uint32_t> g_disarms{0};
constinit std::atomic<uint32_t> g_fork_generation{0};

Mapping* registry() { return g_mappings; }

void MappingRef::release() {
  if (mapping_ == nullptr) return;
  // The cell pointer is read before the count decreases: once it is 0 the entry may be reused.
  Cell* cells = mapping_->cells;
  const size_t bytes = mapping_->cells_bytes;
  if (mapping_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    sys::call(SYS_munmap, sys::word(cells), static_cast<long>(bytes));
  }
  mapping_ = nullptr;
}

MappingRef find_mapping(uintptr_t begin, uintptr_t end, uint32_t* from) {
  if (!maybe_protected(begin, end)) return MappingRef();
  for (uint32_t i = from != nullptr ? *from : 0; i < kMaxMappings; ++i) {
    Mapping& mapping = g_mappings[i];
    if (mapping.live.load(std::memory_order_acquire) == 0) continue;
    if (begin >= mapping.end.load(std::memory_order_relaxed) ||
        end <= mapping.base.load(std::memory_order_relaxed)) {
      continue;
    }
    uint32_t users = mapping.users.load(std::memory_order_relaxed);
    do {
      if (users == 0) break;
    } while (!mapping.users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel));
    if (users == 0) continue;
    MappingRef found(&mapping);
    // The entry may have been reused between the check above and the reference: check again.
    if (mapping.live.load(std::memory_order_acquire) != 0 &&
        begin < mapping.end.load(std::memory_order_relaxed) &&
        end > mapping.base.load(std::memory_order_relaxed)) {
      if (from != nullptr) *from = i + 1;
      return found;
    }
  }
  if (from != nullptr) *from = kMaxMappings;
  return MappingRef();
}

Mapping* take_entry() {
  for (Mapping& mapping : g_mappings) {
    if (mapping.users.load(std::memory_order_acquire) != 0) continue;
    mapping.trips.store(0, std::memory_order_relaxed);
    mapping.by_page.store(false, std::memory_order_relaxed);
    mapping.unordered.store(0, std::memory_order_relaxed);
    mapping.open_head.store(0, std::memory_order_relaxed);
    mapping.transitions.store(0, std::memory_order_relaxed);
    mapping.pinned.store(0, std::memory_order_relaxed);
    for (auto& entry : mapping.open_ring) entry.store(0, std::memory_order_relaxed);
    return &mapping;
  }
  return nullptr;
}

void publish(Mapping& mapping) {
  mapping.users.store(1, std::memory_order_release);
  mapping.live.store(1, std::memory_order_release);
  update_bounds();
}

void withdraw(Mapping& mapping) {
  mapping.live.store(0, std::memory_order_release);
  update_bounds();
  g_disarms.fetch_add(1, std::memory_order_acq_rel);
  MappingRef::adopt(&mapping).release();
}

void registry_after_fork() {
  g_fork_generation.fetch_add(1, std::memory_order_relaxed);
  for (Mapping& mapping : g_mappings) {
    if (mapping.live.load(std::memory_order_relaxed) == 0) {
      // Withdrawn, but still referenced by a thread that does not exist in the child.
      if (mapping.users.exchange(0, std::memory_order_relaxed) != 0) free_cells(mapping);
      continue;
    }
    mapping.users.store(1, std::memory_order_relaxed);
    if (mapping.transitions.exchange(0, std::memory_order_relaxed) == 0 &&
        mapping.pinned.exchange(0, std::memory_order_relaxed) == 0) {
      continue;
    }
    mapping.pinned.store(0, std::memory_order_relaxed);
    for (uint32_t i = 0; i < mapping.cell_count; ++i) {
      CellWord word = mapping.cells[i].load();
      CellWord clean = word.with_pins(0);
      // In transition: the cell's pages may be accessible or not. CLOSED is correct for both: if
      // they are protected, the next touch faults and opens them; if not, no fault occurs.
      if (word.in_transition()) clean = clean.with_state(CellState::kClosed);
      if (clean.bits != word.bits) mapping.cells[i].swap(word, clean);
    }
  }
}

}  // namespace sluice::preload
