// Files that the optimizer opened before this process does, as it starts: an open on a network
// mount takes a round trip, whatever is in memory. What the process gets is the original, as if it
// had opened it itself: the same number, flags and offset; and only if the path still leads to that
// file, in the state in which it was when the optimizer opened it.
#pragma once

#include <fcntl.h>

#include <atomic>

#include "preload/session/connection.h"

namespace sluice::preload {

// See take_opened(). REQUIRES: the optimizer has opened some file.
int take_opened_file(int folder, const char* path, int flags);

// A descriptor of the file, which the caller owns; -1: the file is to be opened. Any thread; not
// from a signal handler, like the questions to the optimizer (session/client.h). errno is
// preserved.
inline int take_opened(int folder, const char* path, int flags) {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  if (__builtin_expect(connection == nullptr, 0)) return -1;
  if (connection->shared->header.opened_count.load(std::memory_order_relaxed) == 0) return -1;
  return (flags & ~O_CLOEXEC) == O_RDONLY ? take_opened_file(folder, path, flags) : -1;
}

}  // namespace sluice::preload
