// How the kernel's signal mask represents whether the application blocks SIGSEGV.
//
// Once Sluice has taken SIGSEGV (see actions.h) the kernel must never block it: a checkpoint that
// faults while it is blocked ends the process. Whether the application blocks SIGSEGV is stored in
// the same kernel mask, as the bit of a signal that no kernel sends: SIGSTKFLT, here called the
// shadow. Everything that saves and restores a mask (a handler's frame, sigsetjmp, getcontext,
// clone, sigsuspend) therefore saves and restores this bit too, so the bit cannot diverge from the
// rest of the mask. A SIGSEGV that is sent while the application blocks it is pending in the kernel
// as a shadow, and is delivered when the shadow is unblocked, by whatever means.
//
// Before SIGSEGV is taken, masks are the application's own, except that the kernel's never has the
// shadow: else a mask of "all but SIGSEGV" would change its meaning later.
//
// The cost is the application's own SIGSTKFLT: it is reported as blocked where most signals are.
//
// All of this is async-signal-safe.
#pragma once

#include <atomic>
#include <csignal>

#include "preload/base/sys.h"

namespace sluice::preload {

inline constexpr int kShadowSignal = SIGSTKFLT;
inline constexpr sys::SignalSet kSegvBit = sys::signal_bit(SIGSEGV);
inline constexpr sys::SignalSet kShadowBit = sys::signal_bit(kShadowSignal);

// SIGSEGV is taken. Written by install_fault_handler().
extern std::atomic<bool> g_segv_taken;

// Translate a mask from the application's terms to the kernel's, and back.
sys::SignalSet to_kernel(sys::SignalSet application);
sys::SignalSet to_application(sys::SignalSet kernel);

// The first word of libc's sets, the only one that the kernel uses.
sys::SignalSet word_of(const sigset_t& set);
void set_word(sigset_t& set, sys::SignalSet word);

// A set in the application's terms, translated for a libc function that passes it to the kernel.
class KernelSet {
 public:
  // nullptr stays nullptr. `unblocks`: the call removes the set from the mask.
  explicit KernelSet(const sigset_t* application, bool unblocks = false);
  const sigset_t* get() const { return given_; }

 private:
  sigset_t set_;
  const sigset_t* given_;
};
void to_application(sigset_t* set);  // in place; nullptr is allowed

// While this object exists, the calling thread may block SIGSEGV again after a call during which
// the kernel's mask does not show that (sigwait, sigsuspend and relatives, begun before SIGSEGV was
// taken).
class HiddenBlock {
 public:
  // `let_in`: the call unblocks SIGSEGV while it waits, or waits for it.
  explicit HiddenBlock(bool let_in);
  ~HiddenBlock();
  HiddenBlock(const HiddenBlock&) = delete;
  HiddenBlock& operator=(const HiddenBlock&) = delete;

 private:
  bool counted_ = false;
};
bool blocks_are_hidden();  // in any thread

// For exec: while this object exists the kernel's mask is the application's mask, since the new
// program inherits it.
class MaskForExec {
 public:
  MaskForExec();
  ~MaskForExec();
  MaskForExec(const MaskForExec&) = delete;
  MaskForExec& operator=(const MaskForExec&) = delete;

 private:
  sys::SignalSet kernel_ = 0;
  bool changed_ = false;
};

// Queues a SIGSEGV that was sent while blocked as a shadow, to this thread or (not `directed`) to
// the process.
void hold_segv(siginfo_t* info, bool directed);
// After a pending shadow was received: whether it was a held SIGSEGV, which is then no longer held.
bool take_held_segv();
bool holds_segv();

// At a thread's start: its mask was set from attributes, in the application's terms.
void translate_own_mask();

// In the library's constructor: removes an inherited shadow from the kernel's mask.
void adopt_inherited_mask();

// In a fork's child, which does not inherit the parent's pending signals.
void mask_after_fork();

}  // namespace sluice::preload
