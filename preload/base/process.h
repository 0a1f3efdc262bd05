// Which process this is: the one that loaded the library, a fork's child, or a vfork's.
#pragma once

#include <cstdint>

namespace sluice::preload {

void process_init();  // constructor only

// True in a fork's child that has not been through process_after_fork(), however it was forked:
// the mark lies on a page that the kernel wipes on fork and shares on vfork. Async-signal-safe.
bool process_is_new();

// Makes this process its own: pins, slot, locks (startup/fork.cc, which knows what there is).
// Async-signal-safe; single-threaded by nature.
void process_after_fork();
// The part of it that is this room's.
void adopt_process();

// True where the caller must change nothing: a vfork child, running in its parent's memory.
// One getpid().
bool in_vfork_child();

// The same without a system call, where a mistake costs no more than an event: a vfork's child that
// no hook saw being made (a program's own assembly) is not recognised.
bool in_seen_vfork_child();
// The calling thread is about to have a child that shares its memory. `lasting`: the child may run
// beside its parent, or with a thread state of its own.
void vfork_comes(bool lasting);

// True in the process image that loaded the library, false in its fork children.
bool is_root_process();

}  // namespace sluice::preload
