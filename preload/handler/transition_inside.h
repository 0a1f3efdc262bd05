// Opening and closing cells. READ BEFORE CHANGING: runs inside the fault handler. No allocation,
// no libc call, no lock, nothing initialised lazily; see docs/signal-safety.md for the argument
// why none of this can wait for the thread that it interrupted.
#pragma once

#include <cstdint>

#include "preload/handler/mapping.h"

namespace sluice::preload {

enum class Opened : uint8_t {
  kAlready,  // somebody else did, or it never was closed
  kFresh,    // we did: a first touch
  kAgain,    // we did: a re-armed checkpoint
  kFailed,   // the kernel refused even to open the whole mapping
};

// Makes the cell accessible and, if `pin`, pins it there. REQUIRES: all signals blocked in this
// thread (the handler's mask, or SignalsBlocked).
Opened open_cell(Mapping& mapping, uint32_t cell, bool pin);

// Takes back one pin. Async-signal-safe; signals need not be blocked.
void unpin_cell(Mapping& mapping, uint32_t cell);

// After open_cell() returned kFresh or kAgain: tells the optimizer, keeps the books (sequential,
// sticky, random) and puts the oldest open cell back. `address` is the first byte touched.
// REQUIRES: all signals blocked.
void note_trip(Mapping& mapping, uint32_t cell, uintptr_t address, Opened how, uintptr_t pc);

// Opens every cell for good with one mprotect. REQUIRES: all signals blocked. False if the
// kernel refused.
bool open_whole(Mapping& mapping);

// How many cells stay open: max(16, 4 x threads), at most kOpenRing.
void set_open_limit(uint32_t threads);

}  // namespace sluice::preload
