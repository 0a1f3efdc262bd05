// Which process this is: the one that loaded the library, a fork's child, or a vfork's.
#pragma once

#include <cstdint>

namespace sluice::preload {

void process_init();  // constructor only

// True in a fork's child before process_after_fork(), however it was forked: the mark lies on a
// page that the kernel wipes on fork and shares on vfork. Async-signal-safe.
bool process_is_new();

// Resets the state that the child inherited: pins, slot, locks (startup/fork.cc).
// Async-signal-safe; the child is single-threaded.
void process_after_fork();
// The part of it for base/.
void adopt_process();

// True in a vfork child, which runs in its parent's memory: the caller must change no state. Costs
// one getpid().
bool in_vfork_child();

// The same, mostly without a system call, for callers where a mistake costs no more than an event:
// does not recognise a vfork child that no hook saw (made by a program's own assembly).
bool in_seen_vfork_child();
// The calling thread is about to create a child that shares its memory. `lasting`: it may run
// concurrently with its parent, or have its own thread state.
void before_vfork(bool lasting);

// True in the process image that loaded the library, false in its fork children.
bool is_root_process();

}  // namespace sluice::preload
