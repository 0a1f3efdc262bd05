// Files that the optimizer opened before this process does, which it names as it starts, or as
// samples: an open on a network mount takes a round trip, whatever is in memory. What the process
// gets is the original, as if it had opened it itself: the same number, flags and offset; and only
// if the path still leads to that file, in the state in which it was when the optimizer opened it.
#pragma once

#include <fcntl.h>

#include <atomic>

#include "preload/session/connection.h"

namespace sluice::preload {

// What an open of a file that is handed over may say beside O_RDONLY. O_NONBLOCK is set for it, as
// F_GETFL shows; a regular file blocks all the same. O_NOCTTY is stored nowhere.
inline constexpr int kTakenFlags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// Whether the optimizer has some file open ahead of this program. Any thread.
inline bool files_are_open_ahead() {
  const Connection* connection = g_connection.load(std::memory_order_acquire);
  return __builtin_expect(connection != nullptr, 1) &&
         __builtin_expect(
             connection->shared->header.opened_count.load(std::memory_order_acquire) != 0, 0);
}

// See take_opened() and close_opened(). REQUIRES: files_are_open_ahead().
void close_opened_files();
bool may_be_open_ahead(int folder, const char* path);
bool may_be_open_ahead(int fd);
int take_opened_file(int folder, const char* path, int flags);

// A descriptor of the file, which the caller owns; -1: the file is to be opened. Any thread; not
// from a signal handler, like the questions to the optimizer (session/client.h). errno is
// preserved.
inline int take_opened(int folder, const char* path, int flags) {
  if (!files_are_open_ahead() || (flags & ~kTakenFlags) != O_RDONLY) return -1;
  return take_opened_file(folder, path, flags);
}

// To be called before what a file that is open elsewhere may change: removing or renaming it, which
// NFS does to open files in a way of its own; locks and leases of an open file; unmounting. Has the
// optimizer close all files and open no more, and waits for that, with a deadline. Without effect
// if what the call concerns lies on a local disk, where nothing is opened ahead. Otherwise as
// take_opened().
inline void close_opened() {
  if (files_are_open_ahead()) close_opened_files();
}
inline void close_opened_at(int folder, const char* path) {
  if (files_are_open_ahead() && may_be_open_ahead(folder, path)) close_opened_files();
}
inline void close_opened_of(int fd) {
  if (files_are_open_ahead() && may_be_open_ahead(fd)) close_opened_files();
}

}  // namespace sluice::preload
