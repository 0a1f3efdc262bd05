// Windows: within one the calling thread reads samples of a dataset, and its opens for reading may
// be given copies in place of the originals. A window is a begun sample or a begun fetch
// (protocol/sluice.h); windows nest. Descriptors that are still open when the outermost window ends
// are switched to the originals, so that no copy is open outside of windows.
//
// Any thread, not from a signal handler; errno is preserved.
#pragma once

#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/stage/original.h"

namespace sluice::preload {

inline bool in_window() { return t_state.windows != 0; }

inline void window_begins() {
  if (t_state.sample_tid == 0) t_state.sample_tid = static_cast<uint32_t>(sys::tid());
  if (t_state.windows++ == 0) t_state.place_known = 0;
}
// Without effect if none is open.
inline void window_ends() {
  if (t_state.windows != 0 && --t_state.windows == 0) use_originals_of_window();
}

// In a fork's child: its thread is in no window.
inline void windows_after_fork() { t_state.windows = 0; }

}  // namespace sluice::preload
