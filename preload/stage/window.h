// Windows: within one the calling thread reads samples of a dataset, and its opens for reading may
// be given copies in place of the originals. A window is a begun sample or a begun fetch
// (protocol/sluice.h); windows nest. Descriptors that are still open when the outermost window ends
// are switched to the originals, so that no copy is open outside of windows.
//
// Any thread, not from a signal handler; errno is preserved.
#pragma once

#include "preload/base/thread_state.h"

namespace sluice::preload {

inline bool in_window() { return t_state.windows != 0; }

void window_begins();
// Without effect if none is open.
void window_ends();

// In a fork's child: its thread is in no window.
inline void windows_after_fork() { t_state.windows = 0; }

}  // namespace sluice::preload
