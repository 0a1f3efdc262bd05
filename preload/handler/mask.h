// The application's SIGSEGV, in the kernel's mask.
//
// Once SIGSEGV is ours ("taken", see actions.h) the kernel must never block it: a checkpoint that
// faults while it is blocked ends the process. What the application believes about it is kept by
// the kernel all the same, in the same mask, under the number of a signal that no kernel sends:
// SIGSTKFLT, here called the shadow. So the belief is saved and restored by everything that saves
// and restores a mask (a handler's frame, sigsetjmp, getcontext, clone, sigsuspend), and cannot
// differ from what those did. A SIGSEGV that is sent while the application blocks it waits in the
// kernel as a pending shadow, and comes when the shadow is unblocked, by whatever means.
//
// Before SIGSEGV is ours masks are the application's own, but for the shadow, which the kernel
// never has: else a mask of "all but SIGSEGV" would change its meaning later.
//
// The application's own SIGSTKFLT is the price: it counts as blocked where most signals are.
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

// SIGSEGV is ours. Written once, by install_fault_handler().
extern std::atomic<bool> g_segv_taken;

// A mask in the application's terms, as the kernel is to hold it, and back.
sys::SignalSet to_kernel(sys::SignalSet application);
sys::SignalSet to_application(sys::SignalSet kernel);

// The first word of libc's sets, which is all that the kernel has of them.
sys::SignalSet word_of(const sigset_t& set);
void set_word(sigset_t& set, sys::SignalSet word);

// A set in the application's terms for a libc function that hands it to the kernel.
class KernelSet {
 public:
  // nullptr stays nullptr. `unblocks`: the set is to be taken out of the mask.
  explicit KernelSet(const sigset_t* application, bool unblocks = false);
  const sigset_t* get() const { return given_; }

 private:
  sigset_t set_;
  const sigset_t* given_;
};
void to_application(sigset_t* set);  // in place; nullptr is allowed

// While this lives, the calling thread may block SIGSEGV again after a call during which the
// kernel's mask does not say so (sigwait, sigsuspend and relatives before SIGSEGV was ours).
class HiddenBlock {
 public:
  // `let_in`: the call lets SIGSEGV in, or takes it.
  explicit HiddenBlock(bool let_in);
  ~HiddenBlock();
  HiddenBlock(const HiddenBlock&) = delete;
  HiddenBlock& operator=(const HiddenBlock&) = delete;

 private:
  bool counted_ = false;
};
bool blocks_are_hidden();  // in any thread

// For exec: the kernel's mask becomes what the application believes while this lives, since a new
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

// A SIGSEGV that was sent while blocked: waits as a shadow, for this thread or (not `directed`)
// for the process.
void hold_segv(siginfo_t* info, bool directed);
// A pending shadow was taken from the kernel: whether it was a SIGSEGV, which it no longer is.
bool take_held_segv();
bool holds_segv();

// At a thread's start: its mask came from attributes, in the application's terms.
void translate_own_mask();

// Constructor: takes an inherited shadow out of the kernel's mask.
void adopt_inherited_mask();

// In a fork's child: what was pending stays with the parent.
void mask_after_fork();

}  // namespace sluice::preload
