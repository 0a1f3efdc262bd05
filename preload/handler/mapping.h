// The registry of mappings that have checkpoints, with the state of each.
//
// Lookups are lock-free and async-signal-safe; they run in the fault handler and in every hook
// that passes a buffer to the kernel. Registering and removing take g_registry_lock with signals
// blocked. An entry is a slot of a static array, so it is always readable; `users` is the reference
// count of its cells: 1 while registered, plus 1 for every MappingRef. The last release frees them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/base/lock.h"
#include "preload/handler/cell.h"

namespace sluice::preload {

inline constexpr uint32_t kMaxMappings = 128;
inline constexpr uint32_t kOpenRing = 256;  // upper bound of cells open at once
inline constexpr uint32_t kMinOpenCells = 16;

// How a cell is closed again behind the reader.
enum class Rearm : uint8_t {
  kGuardPage,    // one guard region: no VMA
  kProtectPage,  // one mprotect'ed page: two VMAs, within vma_budget()
  kWholeCell,    // zap and protect: the cell's page cache may then be dropped
  kNothing,      // leave open
};

struct Mapping {
  // Registry. Writers: the holder of g_registry_lock; for `users` also every MappingRef.
  std::atomic<uint32_t> users{0};
  std::atomic<uint32_t> live{0};  // 1: lookups find the entry
  std::atomic<uintptr_t> base{0};
  std::atomic<uintptr_t> end{0};  // protected part, whole pages; may end before the mapping does

  // Constant while registered.
  uint64_t file_offset = 0;  // of base, bytes
  uint64_t distance = 0;     // bytes per cell
  uint32_t cell_count = 0;
  int prot = 0;  // as the application requested it
  bool shared = false;
  bool guards = false;     // re-armed pages are guard regions, else mprotect'ed
  bool page_mode = false;  // as in datasupply: one protected page per distance from the start
  Cell* cells = nullptr;   // owned: anonymous pages
  size_t cells_bytes = 0;

  // The optimizer's id. Written when registered, and when a lost session is renewed; relaxed: an
  // event under the old id is dropped.
  std::atomic<uint32_t> file{0};

  // MADV_RANDOM was advised on the whole mapping. Any thread; the optimizer is notified.
  std::atomic<bool> by_page{false};

  // How cells behind the reader are closed again. Written when registered, and set to kNothing for
  // good by any thread that opens the whole mapping.
  std::atomic<Rearm> rearm{Rearm::kNothing};

  // Access pattern. Writers: any thread, relaxed; a lost update costs one wrong prediction.
  std::atomic<uint32_t> trips{0};
  std::atomic<uint32_t> unordered{0};  // trips without a sequential neighbour
  std::atomic<uint32_t> open_head{0};
  std::atomic<uint32_t> open_ring[kOpenRing] = {};  // cell + 1; 0 is empty
  std::atomic<uint32_t> transitions{0};             // cells being opened or closed right now
  std::atomic<uint32_t> pinned{0};                  // pins held, over all cells

  uintptr_t cell_start(uint32_t cell) const {
    return base.load(std::memory_order_relaxed) + uint64_t{cell} * distance;
  }
  size_t cell_length(uint32_t cell) const {
    const uintptr_t start = cell_start(cell);
    const uintptr_t stop = end.load(std::memory_order_relaxed);
    return stop - start < distance ? stop - start : distance;
  }
  uint32_t cell_of(uintptr_t address) const {
    return static_cast<uint32_t>((address - base.load(std::memory_order_relaxed)) / distance);
  }
  uint64_t offset_of(uintptr_t address) const {
    return file_offset + (address - base.load(std::memory_order_relaxed));
  }
};

// A counted reference to a mapping, or empty. Async-signal-safe.
class MappingRef {
 public:
  MappingRef() = default;
  MappingRef(MappingRef&& other) noexcept : mapping_(other.mapping_) { other.mapping_ = nullptr; }
  MappingRef& operator=(MappingRef&&) = delete;
  ~MappingRef() { release(); }
  explicit operator bool() const { return mapping_ != nullptr; }
  Mapping* operator->() const { return mapping_; }
  Mapping& operator*() const { return *mapping_; }
  void release();
  // Transfers the reference to the caller: for pins, which outlive the scope.
  Mapping* detach() {
    Mapping* mapping = mapping_;
    mapping_ = nullptr;
    return mapping;
  }
  static MappingRef adopt(Mapping* mapping) { return MappingRef(mapping); }

 private:
  friend MappingRef find_mapping(uintptr_t, uintptr_t, uint32_t*);
  explicit MappingRef(Mapping* mapping) : mapping_(mapping) {}
  Mapping* mapping_ = nullptr;
};

extern Spinlock g_registry_lock;

// Bounds of all registered mappings; empty (low > high) while there are none. The fast path of
// every hook: two relaxed loads.
extern std::atomic<uintptr_t> g_low;
extern std::atomic<uintptr_t> g_high;

inline bool maybe_protected(uintptr_t begin, uintptr_t end) {
  return begin < g_high.load(std::memory_order_relaxed) &&
         end > g_low.load(std::memory_order_relaxed);
}

// A registered mapping that overlaps [begin, end), in no order of addresses. Async-signal-safe.
// `from`, if given, is the index where the search starts, and is set to where the next one starts.
MappingRef find_mapping(uintptr_t begin, uintptr_t end, uint32_t* from = nullptr);

// Counts removals. A fault at an address of no registered mapping is retried once after each
// removal: it may have been raised just before the removal.
extern std::atomic<uint32_t> g_disarms;

// REQUIRES: g_registry_lock held. Returns a free entry, or nullptr. The caller fills it and then
// calls publish().
Mapping* take_entry();
void publish(Mapping& mapping);
// Hides the entry from lookups; its cells are freed when the last reference is released.
void withdraw(Mapping& mapping);

Mapping* registry();  // kMaxMappings entries. REQUIRES: g_registry_lock held.

// In a fork's child, before its first touch of a mapping: undoes pins, references and unfinished
// transitions of threads that do not exist in the child. Single-threaded.
void registry_after_fork();

// Increases in every fork's child, so that pins taken before the fork are not released after it.
extern std::atomic<uint32_t> g_fork_generation;

}  // namespace sluice::preload
