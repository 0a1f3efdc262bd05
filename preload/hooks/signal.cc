// SIGSEGV's action and mask, as the application believes them to be. From the first checkpoint
// on, the kernel's action is ours and the application's lies in signals/actions.h; the kernel's
// mask never has SIGSEGV, from the start of the process, so that a cell can be opened in any
// thread.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs call them all the same

#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "preload/cells/fault.h"
#include "preload/real.h"
#include "preload/settings.h"
#include "preload/signals/actions.h"
#include "preload/signals/mask.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

// Handlers of other signals, whose sa_mask named SIGSEGV: the bit is given back when asked for.
constinit std::atomic<bool> g_masks_segv[65] = {};

bool ours(int signal) { return signal == SIGSEGV && fault_handler_installed(); }

// siginterrupt() decides what signal() does from then on.
constinit std::atomic<bool> g_interrupts{false};

// signal(), in glibc's words: the signal itself in the mask, SA_RESTART unless siginterrupt().
enum class Semantics : uint8_t { kBsd, kSystemV, kSigset };

// signal() and its relatives for SIGSEGV, once it is ours.
sighandler_t replace_handler(sighandler_t handler, Semantics semantics) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  const struct sigaction before = application_action(false);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (semantics == Semantics::kBsd) {
    sigaddset(&action.sa_mask, SIGSEGV);
    action.sa_flags = g_interrupts.load(std::memory_order_relaxed) ? 0 : SA_RESTART;
  } else if (semantics == Semantics::kSystemV) {
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  }
  set_application_action(action);
  return before.sa_handler;
}

// Another signal got a new handler with a mask of libc's making.
sighandler_t replaced(int number, sighandler_t before) {
  if (before != SIG_ERR && number > 0 && number <= 64) {
    g_masks_segv[number].store(false, std::memory_order_relaxed);
  }
  return before;
}

// What the kernel no longer blocks must be held back by our handler, checkpoints or not.
void application_blocks_segv(bool blocked) {
  if (blocked) install_fault_handler();
  set_segv_blocked(blocked);
}

}  // namespace

SLUICE_EXPORT int sigaction(int signal, const struct sigaction* action,
                            struct sigaction* before) noexcept {
  if (ours(signal)) {
    const struct sigaction now = application_action(false);
    if (action != nullptr) {
      struct sigaction kept = *action;
      sigdelset(&kept.sa_mask, SIGKILL);  // as the kernel does
      sigdelset(&kept.sa_mask, SIGSTOP);
      set_application_action(kept);
    }
    if (before != nullptr) *before = now;
    return 0;
  }
  if (g_settings.off || signal < 1 || signal > 64 || signal == SIGSEGV) {
    return REAL(sigaction)(signal, action, before);
  }
  const bool masked = g_masks_segv[signal].load(std::memory_order_relaxed);
  int result = 0;
  if (action != nullptr && sigismember(&action->sa_mask, SIGSEGV) == 1) {
    struct sigaction without = *action;
    sigdelset(&without.sa_mask, SIGSEGV);
    result = REAL(sigaction)(signal, &without, before);
    if (result == 0) g_masks_segv[signal].store(true, std::memory_order_relaxed);
  } else {
    result = REAL(sigaction)(signal, action, before);
    if (result == 0 && action != nullptr) {
      g_masks_segv[signal].store(false, std::memory_order_relaxed);
    }
  }
  if (result == 0 && before != nullptr && masked) sigaddset(&before->sa_mask, SIGSEGV);
  return result;
}

SLUICE_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  return ours(number) ? replace_handler(handler, Semantics::kBsd)
                      : replaced(number, REAL(signal)(number, handler));
}
SLUICE_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) {
  return ours(number) ? replace_handler(handler, Semantics::kBsd)
                      : replaced(number, REAL(bsd_signal)(number, handler));
}
SLUICE_EXPORT sighandler_t ssignal(int number, sighandler_t handler) noexcept {
  return ours(number) ? replace_handler(handler, Semantics::kBsd)
                      : replaced(number, REAL(ssignal)(number, handler));
}
SLUICE_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) noexcept {
  return ours(number) ? replace_handler(handler, Semantics::kSystemV)
                      : replaced(number, REAL(sysv_signal)(number, handler));
}
SLUICE_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return ours(number) ? replace_handler(handler, Semantics::kSystemV)
                      : replaced(number, REAL(__sysv_signal)(number, handler));
}
SLUICE_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  if (number != SIGSEGV || g_settings.off) return replaced(number, REAL(sigset)(number, handler));
  const bool was_blocked = segv_blocked();
  sighandler_t before = SIG_ERR;
  if (handler == SIG_HOLD) {
    struct sigaction now;
    sigaction(SIGSEGV, nullptr, &now);
    before = now.sa_handler;
    application_blocks_segv(true);
  } else {
    before =
        ours(number) ? replace_handler(handler, Semantics::kSigset) : REAL(sigset)(number, handler);
    if (before != SIG_ERR) set_segv_blocked(false);
  }
  return was_blocked && before != SIG_ERR ? SIG_HOLD : before;
}
SLUICE_EXPORT int sigignore(int number) noexcept {
  if (!ours(number)) return REAL(sigignore)(number);
  replace_handler(SIG_IGN, Semantics::kSigset);
  return 0;
}
SLUICE_EXPORT int siginterrupt(int number, int interrupt) noexcept {
  if (number == SIGSEGV) g_interrupts.store(interrupt != 0, std::memory_order_relaxed);
  if (!ours(number)) return REAL(siginterrupt)(number, interrupt);
  struct sigaction action = application_action(false);
  action.sa_flags = interrupt != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  set_application_action(action);
  return 0;
}

namespace {

template <typename Real>
int change_mask(Real real, int how, const sigset_t* set, sigset_t* before) {
  if (g_settings.off) return real(how, set, before);
  const bool was_blocked = segv_blocked();
  bool now_blocked = was_blocked;
  sigset_t without;
  const sigset_t* given = set;
  if (set != nullptr) {
    const bool named = sigismember(set, SIGSEGV) == 1;
    if (how == SIG_BLOCK && named) now_blocked = true;
    if (how == SIG_UNBLOCK && named) now_blocked = false;
    if (how == SIG_SETMASK) now_blocked = named;
    if (named && how != SIG_UNBLOCK) {
      without = *set;
      sigdelset(&without, SIGSEGV);
      given = &without;
    }
  }
  const int result = real(how, given, before);
  if (result != 0) return result;
  if (before != nullptr && was_blocked) sigaddset(before, SIGSEGV);
  if (now_blocked != was_blocked) application_blocks_segv(now_blocked);
  return result;
}

}  // namespace

SLUICE_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(REAL(sigprocmask), how, set, before);
}
SLUICE_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(REAL(pthread_sigmask), how, set, before);
}
SLUICE_EXPORT int sighold(int number) noexcept {
  if (number != SIGSEGV || g_settings.off) return REAL(sighold)(number);
  application_blocks_segv(true);
  return 0;
}
SLUICE_EXPORT int sigrelse(int number) noexcept {
  if (number != SIGSEGV || g_settings.off) return REAL(sigrelse)(number);
  set_segv_blocked(false);
  return 0;
}
SLUICE_EXPORT int sigblock(int mask) noexcept {
  constexpr int kBit = 1 << (SIGSEGV - 1);
  if (g_settings.off) return REAL(sigblock)(mask);
  const int before = REAL(sigblock)(mask & ~kBit) | (segv_blocked() ? kBit : 0);
  if ((mask & kBit) != 0) application_blocks_segv(true);
  return before;
}
SLUICE_EXPORT int sigsetmask(int mask) noexcept {
  constexpr int kBit = 1 << (SIGSEGV - 1);
  if (g_settings.off) return REAL(sigsetmask)(mask);
  const int before = REAL(sigsetmask)(mask & ~kBit) | (segv_blocked() ? kBit : 0);
  application_blocks_segv((mask & kBit) != 0);
  return before;
}
