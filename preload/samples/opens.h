// The names of files that a thread opens for reading, collected for a framework's adapter, which
// compares them with what the job's dataset knows of its samples. Not from a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// sluice_watch_opens: the calling thread's are collected, or no more. 0, or -EBUSY while another
// thread's are.
int watch_opens(bool on);
// REQUIRES: t_state.watches_opens. `path` is absolute. Any thread's hook.
void note_opened(const char* path, size_t length);
// sluice_take_opens: their length, bytes.
int take_opens(char* text, uint64_t size);
// In a fork's child: the thread is another one, or does not exist there.
void opens_after_fork();

}  // namespace sluice::preload
