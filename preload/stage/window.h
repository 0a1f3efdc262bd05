// Windows on samples: in one the calling thread reads samples of a dataset, and may be given copies
// of files in place of the originals, for reading. A window is a begun sample or a begun fetch
// (protocol/sluice.h); they nest. What was opened in it and is still open when the last ends is
// changed over to the original, so that nothing outside of windows ever has a copy.
//
// Any thread, not from a signal handler; errno is kept.
#pragma once

#include "preload/base/thread_state.h"

namespace sluice::preload {

inline bool in_window() { return t_state.windows != 0; }

void window_begins();
// Without effect if none is open.
void window_ends();

// In a fork's child: it is no window's thread.
inline void windows_after_fork() { t_state.windows = 0; }

}  // namespace sluice::preload
