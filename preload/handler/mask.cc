#include "preload/handler/mask.h"

#include <cstring>

#include "preload/base/settings.h"
#include "preload/base/thread_state.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {

thread_local constinit ThreadState t_state = {};
constinit std::atomic<bool> g_segv_taken{false};

namespace {

using sys::SignalSet;

// Never in a mask that the application sets: the kernel removes the first two, libc the others.
constexpr SignalSet kUnblockable = sys::signal_bit(SIGKILL) | sys::signal_bit(SIGSTOP) |
                                   sys::kInternalSignals | kSegvBit | kShadowBit;

// Not std::popcount: without a known processor that is a call into libgcc_s.
constexpr int signals_in(SignalSet set) {
  int count = 0;
  for (; set != 0; set &= set - 1) ++count;
  return count;
}
constexpr int kMost = signals_in(~kUnblockable) / 2;

constinit std::atomic<bool> g_held{false};  // a pending shadow of the process is a SIGSEGV

constinit std::atomic<uint32_t> g_hidden_blocks{0};

bool taken() { return g_segv_taken.load(std::memory_order_acquire); }

bool most_blocked(SignalSet mask) { return signals_in(mask & ~kUnblockable) > kMost; }

SignalSet change(int how, SignalSet set) {
  SignalSet before = 0;
  sys::call(SYS_rt_sigprocmask, how, sys::word(&set), sys::word(&before), sizeof set);
  return before;
}

}  // namespace

SignalSet to_kernel(SignalSet application) {
  const SignalSet mask = application & ~kShadowBit;
  if ((mask & kSegvBit) == 0 || !taken()) return mask;
  return (mask & ~kSegvBit) | kShadowBit;
}

SignalSet to_application(SignalSet kernel) {
  SignalSet mask = kernel & ~kShadowBit;
  if ((kernel & kShadowBit) != 0 && taken()) mask |= kSegvBit;
  return most_blocked(kernel) ? mask | kShadowBit : mask;
}

SignalSet word_of(const sigset_t& set) {
  SignalSet word;
  memcpy(&word, &set, sizeof word);
  return word;
}

void set_word(sigset_t& set, SignalSet word) { memcpy(&set, &word, sizeof word); }

KernelSet::KernelSet(const sigset_t* application, bool unblocks) : given_(application) {
  if (application == nullptr || g_settings.off) return;
  const SignalSet mask = word_of(*application);
  // SIGSEGV itself too: a call that no hook saw may have blocked it.
  const SignalSet given = to_kernel(mask) | (unblocks ? mask & kSegvBit : 0);
  if (given == mask) return;
  memset(&set_, 0, sizeof set_);
  set_word(set_, given);
  given_ = &set_;
}

void to_application(sigset_t* set) {
  if (set != nullptr && !g_settings.off) set_word(*set, to_application(word_of(*set)));
}

// See sys.h. A mask that was saved before SIGSEGV was taken is translated to the kernel's terms; a
// mask in which we or libc block everything is restored unchanged.
void sys::restore_mask(SignalSet mask) {
  const bool whole = (mask & kInternalSignals) != 0;
  sys::set_mask(whole ? mask : to_kernel(mask) | (mask & kShadowBit));
}

HiddenBlock::HiddenBlock(bool let_in) {
  if (!let_in || g_settings.off || taken() || (change(SIG_BLOCK, 0) & kSegvBit) == 0) return;
  g_hidden_blocks.fetch_add(1, std::memory_order_seq_cst);
  counted_ = true;
}

HiddenBlock::~HiddenBlock() {
  if (counted_) g_hidden_blocks.fetch_sub(1, std::memory_order_seq_cst);
}

bool blocks_are_hidden() { return g_hidden_blocks.load(std::memory_order_seq_cst) != 0; }

MaskForExec::MaskForExec() {
  if (g_settings.off) return;
  kernel_ = change(SIG_BLOCK, 0);
  const SignalSet application = to_application(kernel_);
  changed_ = application != kernel_;
  if (!changed_) return;
  change(SIG_SETMASK, application);
  if ((application & kSegvBit) == 0 || !holds_segv()) return;
  // A pending signal survives exec: a pending shadow is turned back into a SIGSEGV.
  siginfo_t info;
  const SignalSet shadow = kShadowBit;
  const struct timespec now = {};
  change(SIG_BLOCK, kShadowBit);
  if (sys::call(SYS_rt_sigtimedwait, sys::word(&shadow), sys::word(&info), sys::word(&now),
                sizeof shadow) == kShadowSignal &&
      take_held_segv()) {
    sys::call(SYS_rt_tgsigqueueinfo, sys::pid(), sys::tid(), SIGSEGV, sys::word(&info));
  }
  change(SIG_SETMASK, application);
}

MaskForExec::~MaskForExec() {
  if (changed_) change(SIG_SETMASK, kernel_);
}

void hold_segv(siginfo_t* info, bool directed) {
  if (directed) {
    t_state.segv_held = true;
    sys::call(SYS_rt_tgsigqueueinfo, sys::pid(), sys::tid(), kShadowSignal, sys::word(info));
  } else {
    g_held.store(true, std::memory_order_relaxed);
    sys::call(SYS_rt_sigqueueinfo, sys::pid(), kShadowSignal, sys::word(info));
  }
}

bool take_held_segv() {
  if (t_state.segv_held) {
    t_state.segv_held = false;
    return true;
  }
  return g_held.exchange(false, std::memory_order_relaxed);
}

bool holds_segv() { return t_state.segv_held || g_held.load(std::memory_order_relaxed); }

void translate_own_mask() { change(SIG_SETMASK, to_kernel(change(SIG_BLOCK, 0))); }

void adopt_inherited_mask() { change(SIG_UNBLOCK, kShadowBit); }

void mask_after_fork() {
  t_state.segv_held = false;
  g_held.store(false, std::memory_order_relaxed);
  g_hidden_blocks.store(0, std::memory_order_relaxed);
}

}  // namespace sluice::preload
