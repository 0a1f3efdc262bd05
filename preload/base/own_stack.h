// A separate stack for work that needs more than a signal handler's alternate stack has. Frames of
// all other code that hooks reach are limited by the compiler (preload/module.mk).
#pragma once

#include <memory>

namespace sluice::preload {

// Runs work(argument) on a new stack of 256 KiB, or on the current one if out of memory.
// Async-signal-safe if `work` is. Costs two system calls and some page faults.
void run_on_own_stack(void (*work)(void*), void* argument);

// Whether the thread runs on an alternate signal stack. Async-signal-safe; a system call.
bool on_signal_stack();

// The same for a function object, whose result is dropped.
template <typename Work>
void on_own_stack(Work work) {
  run_on_own_stack([](void* argument) { (*static_cast<Work*>(argument))(); }, std::addressof(work));
}

// For frequent calls: on the current stack unless it is an alternate signal stack.
template <typename Work>
void with_room(Work work) {
  if (on_signal_stack()) {
    on_own_stack(work);
  } else {
    work();
  }
}

}  // namespace sluice::preload
