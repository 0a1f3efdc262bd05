// Whether the calling thread's accesses are those that the copies may answer: it sees the files
// that the optimizer sees, and may read what the optimizer may (protocol/access_identity.h).
//
// What the thread may read is asked of the kernel at each open. Where its paths lead (root, mount
// and user name space) costs ten times as much to ask, and is asked once in each window, and again
// after any call of this process that may have changed it. Left is a thread that changes its name
// space within a window by a system call instruction of its own.
#pragma once

#include "protocol/stage.h"

namespace sluice::preload {

// Any thread; async-signal-safe.
bool same_identity(const protocol::Stage& stage);

// Around a call that changes what this process or thread may open, or where paths lead. Before it
// all that reads copies is changed over to the originals, which may be refused afterwards; after it
// no thread relies on what it found before. Any thread; errno is kept.
class IdentityChange {
 public:
  explicit IdentityChange(bool changes = true);  // false: without effect
  ~IdentityChange();
  IdentityChange(const IdentityChange&) = delete;
  IdentityChange& operator=(const IdentityChange&) = delete;

 private:
  const bool changes_;
};

// Whether the system call of this number is such a call; whether it mounts or unmounts.
bool changes_identity(long number);
bool changes_mounts(long number);

}  // namespace sluice::preload
