// The names of files that a thread opens for reading, collected for a framework's adapter, which
// compares them with what the job's dataset knows of its samples. Not from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// sluice_watch_opens: the calling thread's are collected, or no more, and those of threads that may
// read for it, as a pool's do: of all that have begun no sample of their own. 0, or -EBUSY while
// another thread's are.
int watch_opens(bool on);
// Whether the calling thread's opens are collected.
bool opens_are_watched();
// REQUIRES: opens_are_watched(). `path` is absolute. Any thread's hook.
void note_opened(const char* path, size_t length);
// sluice_take_opens: their length, bytes.
int take_opens(char* text, uint64_t size);
// In a fork's child: the thread is another one, or does not exist there.
void opens_after_fork();

}  // namespace sluice::preload
