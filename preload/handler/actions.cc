// Reached from the fault handler: application_action, restore_kernel_action. See actions.h.
#include "preload/handler/actions.h"

#include <cstring>

#include "preload/base/lock.h"
#include "preload/base/real.h"
#include "preload/base/threads.h"
#include "preload/handler/fault.h"
#include "preload/handler/mask.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {
namespace {

constinit Spinlock g_lock;
constinit struct sigaction g_segv = {};
constinit struct sigaction g_shadow = {};
constinit std::atomic<bool> g_clean{false};  // no thread blocks SIGSEGV in the kernel, nor will one

struct sigaction& record(int signal) {
  return signal == SIGSEGV ? g_segv : g_shadow;
}

// The kernel's layout of struct sigaction, for system calls that bypass libc.
struct KernelAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  sys::SignalSet mask;
  bool operator==(const KernelAction&) const = default;
};

bool kernel_action(int signal, const KernelAction* wanted, KernelAction* before) {
  return sys::call(SYS_rt_sigaction, signal, sys::word(wanted), sys::word(before),
                   sizeof before->mask) == 0;
}

bool fault_handler_intact() {
  KernelAction now;
  return kernel_action(SIGSEGV, nullptr, &now) &&
         now.handler == reinterpret_cast<void*>(&fault_handler);
}

// SA_ONSTACK: an application's handler for stack overflow needs it, and has set an alternate stack.
// All signals are blocked, so that no handler runs between our load of a cell and our change of it.
bool take_action(int signal, struct sigaction* before) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = signal == SIGSEGV ? fault_handler : shadow_handler;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
  if (REAL(sigaction)(signal, &ours, before) != 0) return false;
  if (before != nullptr) to_application(&before->sa_mask);
  return true;
}

// The kernel blocks the signals of an action's mask while the handler runs: SIGSEGV must be in that
// mask only as the shadow.
void translate_action(int signal) {
  KernelAction read;
  if (!kernel_action(signal, nullptr, &read)) return;
  for (int attempt = 0; attempt < 8 && (read.mask & kSegvBit) != 0; ++attempt) {
    KernelAction wanted = read;
    wanted.mask = to_kernel(read.mask);
    KernelAction replaced;
    if (!kernel_action(signal, &wanted, &replaced) || replaced == read) return;
    read = replaced;  // another thread set an action meanwhile: translate that one
  }
}

}  // namespace

bool fault_handler_installed() { return g_segv_taken.load(std::memory_order_acquire); }

bool action_is_recorded(int signal) {
  return (signal == SIGSEGV || signal == kShadowSignal) && fault_handler_installed();
}

void reinstall_fault_handler() { take_action(SIGSEGV, nullptr); }

Taken can_take_segv() {
  if (g_clean.load(std::memory_order_acquire)) {
    return fault_handler_intact() ? Taken::kOurs : Taken::kLost;
  }
  const sys::SignalSet bad = fault_handler_installed() ? kSegvBit : kSegvBit | kShadowBit;
  return blocks_are_hidden() || others_block(bad) ? Taken::kBlocked : Taken::kOurs;
}

Taken install_fault_handler() {
  Locked locked(g_lock);
  const Taken possible = can_take_segv();
  if (possible != Taken::kOurs || g_clean.load(std::memory_order_relaxed)) return possible;
  if (!fault_handler_installed()) {
    struct sigaction segv;
    // From here on the mask hooks leave SIGSEGV unblocked, and the sigaction() hooks use the
    // record, for which they wait for our lock.
    g_segv_taken.store(true, std::memory_order_release);
    if (!take_action(SIGSEGV, &segv)) {
      g_segv_taken.store(false, std::memory_order_release);
      return Taken::kLost;
    }
    g_segv = segv;
    take_action(kShadowSignal, &g_shadow);
    for (int signal = 1; signal <= 64; ++signal) {
      if (signal != SIGSEGV && signal != kShadowSignal) translate_action(signal);
    }
  }
  // A thread may have blocked SIGSEGV before g_segv_taken was set.
  if (blocks_are_hidden() || others_block(kSegvBit)) return Taken::kBlocked;
  g_clean.store(true, std::memory_order_release);
  return fault_handler_intact() ? Taken::kOurs : Taken::kLost;
}

struct sigaction application_action(int signal, bool reset_if_one_shot) {
  Locked locked(g_lock);
  struct sigaction action = record(signal);
  if (reset_if_one_shot && (action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    record(signal).sa_handler = SIG_DFL;
  }
  return action;
}

void set_application_action(int signal, const struct sigaction& action) {
  Locked locked(g_lock);
  record(signal) = action;
}

void restore_kernel_action(int signal, bool ignore) {
  KernelAction plain = {};
  plain.handler = ignore ? reinterpret_cast<void*>(SIG_IGN) : reinterpret_cast<void*>(SIG_DFL);
  KernelAction before;
  kernel_action(signal, &plain, &before);
}

void actions_after_fork() { g_lock.reset(); }

}  // namespace sluice::preload
