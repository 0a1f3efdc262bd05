// Windows: within one the calling thread reads samples of a dataset, and its opens for reading may
// be given copies in place of the originals. A window is a begun sample or a begun fetch
// (protocol/sluice.h); windows nest. Descriptors that are still open when the outermost window ends
// are switched to the originals, so that no copy is open outside of windows.
//
// Any thread, not from a signal handler; errno is preserved.
#pragma once

#include <atomic>

#include "preload/base/sys.h"
#include "preload/base/thread_state.h"
#include "preload/stage/original.h"

namespace sluice::preload {

// Outermost windows of all threads of the process.
inline constinit std::atomic<uint32_t> g_windows_open{0};

inline bool in_window() { return t_state.windows != 0; }
// Another thread reads samples, and the calling one may read for it, as threads of a pool do.
inline bool beside_window() {
  return t_state.windows == 0 && g_windows_open.load(std::memory_order_relaxed) != 0;
}

inline void window_begins() {
  if (t_state.sample_tid == 0) t_state.sample_tid = static_cast<uint32_t>(sys::tid());
  if (t_state.windows++ != 0) return;
  t_state.place_known = 0;
  g_windows_open.fetch_add(1, std::memory_order_relaxed);
}
// Without effect if none is open.
inline void window_ends() {
  if (t_state.windows == 0 || --t_state.windows != 0) return;
  g_windows_open.fetch_sub(1, std::memory_order_relaxed);
  use_originals_of_window();
}

// In a fork's child: its thread is in no window.
inline void windows_after_fork() {
  t_state.windows = 0;
  g_windows_open.store(0, std::memory_order_relaxed);
}

}  // namespace sluice::preload
