// One cell of a protected mapping: its state, its pins and its history in one atomic word.
//
//   CLOSED ---+                       whole cell PROT_NONE: the first touch is the checkpoint
//   GUARDED --+-> OPENING -> OPEN     GUARDED: open but for its first page (a guard region, or
//                  ^          |       an mprotect'ed page where the kernel has none)
//                  |          v
//              CLOSED/GUARDED <- CLOSING      only from OPEN with zero pins
//
// The thread that wins the compare-and-swap to OPENING or CLOSING owns the transition; every other
// thread waits for its end. The owner has all signals blocked and makes few system calls, so the
// wait is short, and no thread ever waits for itself. This file makes no system call.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::preload {

enum class CellState : uint8_t {
  kClosed = 0,  // zero: a fresh anonymous page is an array of closed cells
  kGuarded = 1,
  kOpening = 2,
  kOpen = 3,
  kClosing = 4,
  kSticky = 5,  // open, never closed again
};

// Layout of the word: state 0-7, pins 8-23, version 24-39, last trip 40-63.
struct CellWord {
  uint64_t bits = 0;

  CellState state() const { return static_cast<CellState>(bits & 0xff); }
  uint32_t pins() const { return static_cast<uint32_t>(bits >> 8) & 0xffff; }
  uint32_t last_trip() const { return static_cast<uint32_t>(bits >> 40); }

  // Every change of state increases the version, so that a fault can distinguish "still the same
  // open cell" from "closed and opened again since".
  CellWord with_state(CellState state) const {
    const uint64_t version = ((bits >> 24) + 1) & 0xffff;
    return {(bits & ~0xffff0000ffULL) | static_cast<uint64_t>(state) | version << 24};
  }
  CellWord with_pins(uint32_t pins) const {
    return {(bits & ~0xffff00ULL) | static_cast<uint64_t>(pins & 0xffff) << 8};
  }
  CellWord with_last_trip(uint32_t trip) const {
    return {(bits & ~(0xffffffULL << 40)) | static_cast<uint64_t>(trip & 0xffffff) << 40};
  }
  // State and version, without pins: compared when a fault repeats.
  uint64_t identity() const { return bits & 0xffff0000ffULL; }

  bool accessible() const { return state() == CellState::kOpen || state() == CellState::kSticky; }
  bool in_transition() const {
    return state() == CellState::kOpening || state() == CellState::kClosing;
  }
};
inline constexpr uint32_t kMaxPins = 0xffff;

// The atomic word. All orders are acquire-release: a cell's opening must be visible before its data
// is used, and a closing must not be reordered with a pin.
class Cell {
 public:
  CellWord load() const { return {word_.load(std::memory_order_acquire)}; }
  bool swap(CellWord& expected, CellWord desired) {
    return word_.compare_exchange_weak(expected.bits, desired.bits, std::memory_order_acq_rel,
                                       std::memory_order_acquire);
  }
  // Ends a transition that the caller owns; preserves pins that were added meanwhile.
  void finish(CellState state) {
    CellWord now = load();
    while (!swap(now, now.with_state(state))) {
    }
  }

 private:
  std::atomic<uint64_t> word_{0};
};
static_assert(sizeof(Cell) == 8 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace sluice::preload
