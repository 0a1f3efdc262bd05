#include "preload/signals/mask.h"

#include <csignal>

#include "preload/settings.h"
#include "preload/sys.h"
#include "preload/thread_state.h"

namespace sluice::preload {

thread_local constinit ThreadState t_state = {};

namespace {

constexpr sys::SignalSet kSegv = sys::signal_bit(SIGSEGV);

sys::SignalSet change(int how, sys::SignalSet set) {
  sys::SignalSet before = 0;
  sys::call(SYS_rt_sigprocmask, how, sys::word(&set), sys::word(&before), sizeof set);
  return before;
}

void send_pending() {
  t_state.pending = false;
  sys::call(SYS_rt_tgsigqueueinfo, sys::pid(), sys::tid(), SIGSEGV,
            sys::word(&t_state.pending_info));
}

}  // namespace

bool segv_blocked() { return t_state.segv_blocked; }

bool segv_pending() { return t_state.pending; }

void set_segv_blocked(bool blocked) {
  t_state.segv_blocked = blocked;
  if (!blocked && t_state.pending) send_pending();
}

WaitMask::WaitMask(const sigset_t* mask) : given_(mask) {
  if (mask == nullptr || g_settings.off) return;
  was_blocked_ = t_state.segv_blocked;
  const bool blocks = sigismember(mask, SIGSEGV) == 1;
  if (blocks) {
    without_ = *mask;
    sigdelset(&without_, SIGSEGV);
    given_ = &without_;
  } else if (t_state.pending) {
    // Queued while really blocked: the wait itself lets it in.
    change(SIG_BLOCK, kSegv);
    really_blocked_ = true;
    send_pending();
  }
  t_state.segv_blocked = blocks;
}

WaitMask::~WaitMask() {
  if (given_ == nullptr || g_settings.off) return;
  t_state.segv_blocked = was_blocked_;
  if (really_blocked_) change(SIG_UNBLOCK, kSegv);
}

WaitForSegv::WaitForSegv(const sigset_t* set)
    : wanted_(!g_settings.off && set != nullptr && sigismember(set, SIGSEGV) == 1) {
  if (!wanted_) return;
  change(SIG_BLOCK, kSegv);
  if (t_state.pending) send_pending();
}

WaitForSegv::~WaitForSegv() {
  if (wanted_) change(SIG_UNBLOCK, kSegv);
}

bool block_segv_for_exec() {
  if (!t_state.segv_blocked) return false;
  change(SIG_BLOCK, kSegv);
  return true;
}

void unblock_segv_after_exec() { change(SIG_UNBLOCK, kSegv); }

void adopt_inherited_mask() {
  if ((change(SIG_BLOCK, 0) & kSegv) == 0) return;
  t_state.segv_blocked = true;
  change(SIG_UNBLOCK, kSegv);
}

}  // namespace sluice::preload
