// Counts the staged copies of which a thread made no use, for each sample that it ends
// (policy/planner/uptake.h). The calling thread's own; not from a signal handler.
#pragma once

#include <cstdint>

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

}  // namespace sluice::preload
