// Counts the staged copies of which a thread made no use, for each sample that it ends
// (policy/planner/uptake.h). The calling thread's own, but for those that were missed; not from a
// signal handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "preload/base/thread_state.h"

namespace sluice::preload {

// An open was given the copy with this inode.
inline void note_copy_given(uint64_t inode) {
  ++t_state.copies_given;
  t_state.last_copy_given = t_state.last_copy == inode ? t_state.last_copy_given + 1 : 1;
  t_state.last_copy = inode;
}

// A descriptor of the copy was switched to the original. Earlier opens of that file in a row made
// no use of the copy either: numpy.load() reads a file's header, then opens the file again and maps
// it.
inline void note_copy_left(uint64_t inode) {
  const bool last = t_state.last_copy == inode && t_state.last_copy_given != 0;
  t_state.copies_left += last ? t_state.last_copy_given : 1;
  if (last) t_state.last_copy_given = 0;
}

// Opens beside a window (stage/window.h) of files that had a copy, since a sample ended in any
// thread.
inline constinit std::atomic<uint32_t> g_copies_missed{0};

struct CopyCounts {
  uint32_t given = 0, left = 0;
};
// Since the thread ended its last sample. What was missed counts as given and left, once.
inline CopyCounts take_copy_counts() {
  const uint32_t missed = g_copies_missed.load(std::memory_order_relaxed) == 0
                              ? 0
                              : g_copies_missed.exchange(0, std::memory_order_relaxed);
  return {std::exchange(t_state.copies_given, 0) + missed,
          std::exchange(t_state.copies_left, 0) + missed};
}

}  // namespace sluice::preload
