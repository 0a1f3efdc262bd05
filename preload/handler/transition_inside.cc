// READ BEFORE CHANGING: this runs inside the fault handler (see the header).
#include "preload/handler/transition_inside.h"

#include <sys/mman.h>

#include "preload/base/backoff.h"
#include "preload/base/sys.h"
#include "preload/session/events.h"
#include "preload/session/waits.h"
#include "protocol/page.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {
namespace {
// A run of neighbours may skip a cell: readers that alternate skip each other's records.
constexpr uint32_t kNeighbours = 2;
constexpr uint32_t kRandomAfter = 32;
// Some random trips look sequential by chance: in a mapping of 256 cells one in sixteen. With a
// greater value than this, such a mapping would never be classified as random.
constexpr uint32_t kSequentialForgives = 2;

constinit std::atomic<uint32_t> g_open_limit{kMinOpenCells};

bool open_pages(Mapping& mapping, uint32_t cell, bool was_closed) {
  const uintptr_t start = mapping.cell_start(cell);
  const size_t length = mapping.cell_length(cell);
  long result = 0;
  if (mapping.guards) {
    // A cell that was in transition at a fork is marked CLOSED and may have either protection.
    result = sys::advise(start, length < kPage ? length : kPage, sys::kGuardRemove);
    if (!was_closed && result == 0) return true;
  }
  if (was_closed) {
    result = sys::protect(start, length, mapping.prot);
  } else {
    result = sys::protect(start, length < kPage ? length : kPage, mapping.prot);
  }
  return result == 0 || open_whole(mapping);
}

// Closes a cell again, unless it is pinned, sticky or in a transition that another thread owns.
void close_cell(Mapping& mapping, uint32_t cell) {
  Cell& state = mapping.cells[cell];
  // Counted before rearm is read: disarm() writes kNothing and then waits for transitions to end.
  mapping.transitions.fetch_add(1, std::memory_order_seq_cst);
  const Rearm rearm = mapping.rearm.load(std::memory_order_seq_cst);
  CellWord word = state.load();
  bool ours = false;
  while (rearm != Rearm::kNothing && word.state() == CellState::kOpen && word.pins() == 0) {
    if (state.swap(word, word.with_state(CellState::kClosing))) {
      ours = true;
      break;
    }
  }
  if (ours) {
    const uintptr_t start = mapping.cell_start(cell);
    const size_t length = mapping.cell_length(cell);
    CellState next = CellState::kOpen;
    if (rearm == Rearm::kGuardPage) {
      if (sys::advise(start, length < kPage ? length : kPage, sys::kGuardInstall) == 0) {
        next = CellState::kGuarded;
      }
    } else if (rearm == Rearm::kProtectPage) {
      if (sys::protect(start, length < kPage ? length : kPage, PROT_NONE) == 0) {
        next = CellState::kGuarded;
      }
    } else {
      if (mapping.shared) sys::advise(start, length, MADV_DONTNEED);
      if (sys::protect(start, length, PROT_NONE) == 0) next = CellState::kClosed;
      if (mapping.shared)
        emit_zapped(mapping.file.load(std::memory_order_relaxed), mapping.offset_of(start), length);
    }
    state.finish(next);
    if (next != CellState::kOpen) count(protocol::ClientMetric::cells_rearmed);
  }
  mapping.transitions.fetch_sub(1, std::memory_order_acq_rel);
}

// Whether a cell just before this one was tripped recently: within as many trips as there may be
// readers, each of which has a run of its own.
bool continues_a_run(const Mapping& mapping, uint32_t cell, uint32_t trip) {
  const uint32_t recent = g_open_limit.load(std::memory_order_relaxed) / 2;
  for (uint32_t back = 1; back <= kNeighbours && back <= cell; ++back) {
    const CellWord before = mapping.cells[cell - back].load();
    if (before.last_trip() != 0 && ((trip - before.last_trip()) & 0xffffff) <= recent) return true;
  }
  return false;
}

// Enters an open cell into the ring, and closes the cell that it displaces.
void push_open(Mapping& mapping, uint32_t cell) {
  const uint32_t limit = mapping.page_mode ? 1 : g_open_limit.load(std::memory_order_relaxed);
  const uint32_t place = mapping.open_head.fetch_add(1, std::memory_order_relaxed) % limit;
  const uint32_t oldest = mapping.open_ring[place].exchange(cell + 1, std::memory_order_acq_rel);
  if (oldest != 0 && oldest != cell + 1) close_cell(mapping, oldest - 1);
}

}  // namespace

void set_open_limit(uint32_t threads) {
  uint32_t limit = threads * 4 > kMinOpenCells ? threads * 4 : kMinOpenCells;
  if (limit > kOpenRing) limit = kOpenRing;
  g_open_limit.store(limit, std::memory_order_relaxed);
}

bool open_whole(Mapping& mapping) {
  mapping.rearm.store(Rearm::kNothing, std::memory_order_seq_cst);
  const uintptr_t base = mapping.base.load(std::memory_order_relaxed);
  const size_t length = mapping.end.load(std::memory_order_relaxed) - base;
  const long result = sys::protect(base, length, mapping.prot);
  if (mapping.guards) sys::advise(base, length, sys::kGuardRemove);
  return result == 0;
}

Opened open_cell(Mapping& mapping, uint32_t cell, bool pin) {
  Cell& state = mapping.cells[cell];
  const uint32_t more = pin ? 1 : 0;
  Backoff backoff;
  for (CellWord word = state.load();;) {
    if (word.in_transition()) {
      backoff.wait();
      word = state.load();
      continue;
    }
    if (word.accessible()) {
      if (!pin) return Opened::kAlready;
      CellWord pinned = word.pins() < kMaxPins ? word.with_pins(word.pins() + 1)
                                               : word.with_state(CellState::kSticky);
      if (!state.swap(word, pinned)) continue;
      return Opened::kAlready;
    }
    mapping.transitions.fetch_add(1, std::memory_order_acq_rel);
    const bool was_closed = word.state() == CellState::kClosed;
    Opened result = was_closed ? Opened::kFresh : Opened::kAgain;
    if (state.swap(word, word.with_state(CellState::kOpening))) {
      if (!open_pages(mapping, cell, was_closed)) result = Opened::kFailed;
      CellWord now = state.load();
      while (!state.swap(now, now.with_pins(now.pins() + more).with_state(CellState::kOpen))) {
      }
      mapping.transitions.fetch_sub(1, std::memory_order_acq_rel);
      return result;
    }
    mapping.transitions.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void unpin_cell(Mapping& mapping, uint32_t cell) {
  CellWord word = mapping.cells[cell].load();
  do {
    if (word.pins() == 0) return;
  } while (!mapping.cells[cell].swap(word, word.with_pins(word.pins() - 1)));
}

void note_trip(Mapping& mapping, uint32_t cell, uintptr_t address, Opened how, uintptr_t pc) {
  const uint32_t trip = mapping.trips.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool run = continues_a_run(mapping, cell, trip);
  count(protocol::ClientMetric::checkpoints_hit);
  note_faults();

  // The cell tripped twice within the window, and not by a sequential run that returned to it, as
  // LMDB's meta and branch pages do. Its trips do not show the reader's position.
  const uint32_t window = 2 * g_open_limit.load(std::memory_order_relaxed);
  CellWord word = mapping.cells[cell].load();
  const uint32_t last = word.last_trip();
  const bool sticky = !run && last != 0 && ((trip - last) & 0xffffff) < window;
  CellWord next;
  do {
    next = word.with_last_trip(trip);
    if (sticky && word.state() == CellState::kOpen) next = next.with_state(CellState::kSticky);
  } while (!mapping.cells[cell].swap(word, next));
  if (sticky) {
    count(protocol::ClientMetric::cells_sticky);
    return;
  }

  uint16_t flags = sample_flags();
  if (how == Opened::kAgain) flags |= protocol::kFlagAgain;
  if (mapping.page_mode) flags |= protocol::kFlagPage;
  const uintptr_t stop = mapping.cell_start(cell) + mapping.cell_length(cell);
  emit_trip(mapping.file.load(std::memory_order_relaxed), mapping.offset_of(address),
            stop - address, pc, flags);
  push_open(mapping, cell);

  if (run) {
    const uint32_t unordered = mapping.unordered.load(std::memory_order_relaxed);
    mapping.unordered.store(unordered > kSequentialForgives ? unordered - kSequentialForgives : 0,
                            std::memory_order_relaxed);
  } else if (mapping.unordered.fetch_add(1, std::memory_order_relaxed) + 1 == kRandomAfter &&
             !mapping.page_mode) {
    open_whole(mapping);
    count(protocol::ClientMetric::mappings_random);
    emit_random(mapping.file.load(std::memory_order_relaxed));
  }
}

}  // namespace sluice::preload
