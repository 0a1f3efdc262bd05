// A stack of our own for work that needs more than a signal handler's alternate stack has.
#pragma once

namespace sluice::preload {

// Runs `work` on a fresh stack of 256 KiB, or on the present one if there is no memory for it.
// Async-signal-safe if `work` is. Costs three system calls.
void on_own_stack(void (*work)());

}  // namespace sluice::preload
