// Opening and closing cells. READ BEFORE CHANGING: runs inside the fault handler. No allocation,
// no libc call, no lock, no lazy initialisation; see docs/signal-safety.md for the argument why
// this code never waits for the thread that the handler interrupted.
#pragma once

#include <cstdint>

#include "preload/handler/mapping.h"

namespace sluice::preload {

enum class Opened : uint8_t {
  kAlready,  // another thread opened it, or it was not closed
  kFresh,    // this call opened it: a first touch
  kAgain,    // this call opened it: a re-armed checkpoint
  kFailed,   // the kernel refused even to open the whole mapping
};

// Makes the cell accessible and, if `pin`, pins it there. REQUIRES: all signals blocked in this
// thread (the handler's mask, or SignalsBlocked).
Opened open_cell(Mapping& mapping, uint32_t cell, bool pin);

// Releases one pin. Async-signal-safe; signals need not be blocked.
void unpin_cell(Mapping& mapping, uint32_t cell);

// After open_cell() returned kFresh or kAgain: notifies the optimizer, updates the access pattern
// (sequential, sticky, random) and closes the oldest open cell. `address` is the first byte
// touched. REQUIRES: all signals blocked.
void note_trip(Mapping& mapping, uint32_t cell, uintptr_t address, Opened how, uintptr_t pc);

// Opens every cell for good with one mprotect. REQUIRES: all signals blocked. False if the
// kernel refused.
bool open_whole(Mapping& mapping);

// How many cells stay open: max(16, 4 x threads), at most kOpenRing.
void set_open_limit(uint32_t threads);

}  // namespace sluice::preload
