// Whether the calling thread may be given copies: its paths lead to the same files as the
// optimizer's, and it may read what the optimizer may (protocol/access_identity.h).
//
// The thread's access rights are read from the kernel at each open. Where its paths lead (root,
// mount and user namespace) costs ten times as much to read; it is read once in each window, and
// again after any call of this process that may have changed it. The one case not covered is a
// thread that changes its namespace within a window by an inline system call.
#pragma once

#include "protocol/stage.h"

namespace sluice::preload {

// Any thread; async-signal-safe.
bool same_identity(const protocol::Stage& stage);

// Around a call that changes what this process or thread may open, or where paths lead. Before it
// all descriptors that read copies are switched to the originals, which may fail to open later;
// after it no thread uses a cached result of before. Any thread; errno is preserved.
class IdentityChange {
 public:
  explicit IdentityChange(bool changes = true);  // false: without effect
  ~IdentityChange();
  IdentityChange(const IdentityChange&) = delete;
  IdentityChange& operator=(const IdentityChange&) = delete;

 private:
  const bool changes_;
};

// Whether the system call `number` changes identity or paths as above; whether it (un)mounts.
bool changes_identity(long number);
bool changes_mounts(long number);

}  // namespace sluice::preload
