// Whether the application believes SIGSEGV to be blocked in this thread. Async-signal-safe.
#pragma once

#include <csignal>

namespace sluice::preload {

bool segv_blocked();

// Unblocking delivers a SIGSEGV that somebody sent meanwhile.
void set_segv_blocked(bool blocked);

// For exec: the kernel's mask becomes what the application believes, since a new program
// inherits it. Returns true if it must be taken back should exec fail.
bool block_segv_for_exec();
void unblock_segv_after_exec();

// A blocking call that waits with `mask` in place of the thread's (sigsuspend, ppoll, ...).
// While it lives, mask() is what the kernel gets, and a SIGSEGV that was sent while blocked
// arrives inside the call if `mask` lets it. nullptr: the call has no mask, nothing happens.
class WaitMask {
 public:
  explicit WaitMask(const sigset_t* mask);
  ~WaitMask();
  WaitMask(const WaitMask&) = delete;
  WaitMask& operator=(const WaitMask&) = delete;
  const sigset_t* mask() const { return given_; }

 private:
  const sigset_t* given_;
  sigset_t without_;
  bool was_blocked_ = false;
  bool really_blocked_ = false;
};

// A call that waits for signals as messages (sigwait, ...). If `set` has SIGSEGV the kernel
// really blocks it meanwhile, and one that came before is there to be taken.
class WaitForSegv {
 public:
  explicit WaitForSegv(const sigset_t* set);
  ~WaitForSegv();
  WaitForSegv(const WaitForSegv&) = delete;
  WaitForSegv& operator=(const WaitForSegv&) = delete;

 private:
  bool wanted_;
};

// A SIGSEGV was sent while it counted as blocked.
bool segv_pending();

// Constructor: takes an inherited SIGSEGV out of the kernel's mask, into our books.
void adopt_inherited_mask();

}  // namespace sluice::preload
