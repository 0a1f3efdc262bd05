// Reached from the fault handler: application_action, restore_kernel_action. See actions.h.
#include "preload/signals/actions.h"

#include <cstring>

#include "preload/cells/fault.h"
#include "preload/lock.h"
#include "preload/real.h"

namespace sluice::preload {
namespace {

constinit Spinlock g_lock;
constinit struct sigaction g_application = {};
constinit std::atomic<bool> g_installed{false};

// The kernel's own layout, for asking without libc.
struct KernelAction {
  void* handler;
  unsigned long flags;
  void* restorer;
  sys::SignalSet mask;
};

bool kernel_action(KernelAction* out) {
  return sys::call(SYS_rt_sigaction, SIGSEGV, 0, sys::word(out), sizeof(out->mask)) == 0;
}

}  // namespace

bool fault_handler_installed() { return g_installed.load(std::memory_order_acquire); }

bool fault_handler_intact() {
  KernelAction now;
  return kernel_action(&now) && now.handler == reinterpret_cast<void*>(&fault_handler);
}

namespace {
// ONSTACK: a handler for stack overflow needs it, and has set an alternate stack. Everything is
// blocked, so that nothing runs between our look at a cell and our change of it.
bool take_action(struct sigaction* before) {
  struct sigaction ours;
  memset(&ours, 0, sizeof ours);
  ours.sa_sigaction = fault_handler;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
  return REAL(sigaction)(SIGSEGV, &ours, before) == 0;
}
}  // namespace

void reinstall_fault_handler() { take_action(nullptr); }

bool install_fault_handler() {
  if (fault_handler_installed()) return fault_handler_intact();
  Locked locked(g_lock);
  if (fault_handler_installed()) return fault_handler_intact();
  struct sigaction before;
  if (!take_action(&before)) return false;
  g_application = before;
  g_installed.store(true, std::memory_order_release);
  return fault_handler_intact();
}

struct sigaction application_action(bool reset_if_one_shot) {
  Locked locked(g_lock);
  struct sigaction action = g_application;
  if (reset_if_one_shot && (action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    g_application.sa_handler = SIG_DFL;
  }
  return action;
}

void set_application_action(const struct sigaction& action) {
  Locked locked(g_lock);
  g_application = action;
}

void restore_kernel_action(bool ignore) {
  KernelAction plain = {};
  plain.handler = ignore ? reinterpret_cast<void*>(SIG_IGN) : reinterpret_cast<void*>(SIG_DFL);
  sys::call(SYS_rt_sigaction, SIGSEGV, sys::word(&plain), 0, sizeof(plain.mask));
}

void actions_after_fork() { g_lock.reset(); }

}  // namespace sluice::preload
