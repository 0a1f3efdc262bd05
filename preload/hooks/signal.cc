// SIGSEGV's action and mask, as the application set them. From the first checkpoint on, the
// kernel's action is our handler and the application's is recorded (handler/actions.h); masks are
// translated as described in handler/mask.h. Before it both are the application's own.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // programs still call them

#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "preload/base/real.h"
#include "preload/base/settings.h"
#include "preload/handler/actions.h"
#include "preload/handler/fault.h"
#include "preload/handler/mask.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

// Set by siginterrupt(): whether signal() omits SA_RESTART from then on.
constinit std::atomic<bool> g_interrupts{false};

// signal(), as in glibc (kBsd): the signal itself in the mask, SA_RESTART unless siginterrupt().
enum class Semantics : uint8_t { kBsd, kSystemV, kSigset };

// The real signal() or a relative.
template <typename Real>
sighandler_t set_handler(Real real, int number, sighandler_t handler) {
  resolve_hooks();
  return real(number, handler);
}

// signal() and its relatives, if the signal's action is recorded.
sighandler_t replace_handler(int signal, sighandler_t handler, Semantics semantics) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  const struct sigaction before = application_action(signal, false);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  if (semantics == Semantics::kBsd) {
    sigaddset(&action.sa_mask, signal);
    const bool restarts = signal != SIGSEGV || !g_interrupts.load(std::memory_order_relaxed);
    action.sa_flags = restarts ? SA_RESTART : 0;
  } else if (semantics == Semantics::kSystemV) {
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  }
  set_application_action(signal, action);
  return before.sa_handler;
}

template <typename Real>
int change_mask(Real real, int how, const sigset_t* set, sigset_t* before) {
  const KernelSet given(set, how == SIG_UNBLOCK);
  const int result = real(how, given.get(), before);
  if (result == 0) to_application(before);
  return result;
}

// sighold() and sigrelse(): libc's own would block SIGSEGV itself.
int change_one(int how, int number) {
  sigset_t one;
  sigemptyset(&one);
  if (sigaddset(&one, number) != 0) return -1;
  return change_mask(REAL(sigprocmask), how, &one, nullptr);
}

bool blocked_now(int number) {
  sigset_t mask;
  change_mask(REAL(sigprocmask), SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

}  // namespace

SLUICE_EXPORT int sigaction(int signal, const struct sigaction* action,
                            struct sigaction* before) noexcept {
  if (action_is_recorded(signal)) {
    const struct sigaction now = application_action(signal, false);
    if (action != nullptr) {
      struct sigaction recorded = *action;
      sigdelset(&recorded.sa_mask, SIGKILL);  // as the kernel does
      sigdelset(&recorded.sa_mask, SIGSTOP);
      set_application_action(signal, recorded);
    }
    if (before != nullptr) *before = now;
    return 0;
  }
  if (g_settings.off || action == nullptr) {
    const int result = REAL(sigaction)(signal, action, before);
    if (result == 0 && before != nullptr) to_application(&before->sa_mask);
    return result;
  }
  resolve_hooks();
  struct sigaction given = *action;
  set_word(given.sa_mask, to_kernel(word_of(action->sa_mask)));
  const int result = REAL(sigaction)(signal, &given, before);
  if (result == 0 && before != nullptr) to_application(&before->sa_mask);
  return result;
}

#define SIGNAL(name, semantics, except)                                             \
  SLUICE_EXPORT sighandler_t name(int number, sighandler_t handler) except {        \
    return action_is_recorded(number) ? replace_handler(number, handler, semantics) \
                                      : set_handler(REAL(name), number, handler);   \
  }
SIGNAL(signal, Semantics::kBsd, noexcept)
SIGNAL(bsd_signal, Semantics::kBsd, )
SIGNAL(ssignal, Semantics::kBsd, noexcept)
SIGNAL(sysv_signal, Semantics::kSystemV, noexcept)
SIGNAL(__sysv_signal, Semantics::kSystemV, noexcept)

SLUICE_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  if (!action_is_recorded(number)) return set_handler(REAL(sigset), number, handler);
  const bool was_blocked = blocked_now(number);
  sighandler_t before = SIG_ERR;
  if (handler == SIG_HOLD) {
    before = application_action(number, false).sa_handler;
    change_one(SIG_BLOCK, number);
  } else {
    before = replace_handler(number, handler, Semantics::kSigset);
    if (before != SIG_ERR) change_one(SIG_UNBLOCK, number);
  }
  return was_blocked && before != SIG_ERR ? SIG_HOLD : before;
}
SLUICE_EXPORT int sigignore(int number) noexcept {
  if (!action_is_recorded(number)) return REAL(sigignore)(number);
  replace_handler(number, SIG_IGN, Semantics::kSigset);
  return 0;
}
SLUICE_EXPORT int siginterrupt(int number, int interrupt) noexcept {
  if (number == SIGSEGV) g_interrupts.store(interrupt != 0, std::memory_order_relaxed);
  if (!action_is_recorded(number)) return REAL(siginterrupt)(number, interrupt);
  struct sigaction action = application_action(number, false);
  action.sa_flags = interrupt != 0 ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
  set_application_action(number, action);
  return 0;
}

SLUICE_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(REAL(sigprocmask), how, set, before);
}
SLUICE_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return change_mask(REAL(pthread_sigmask), how, set, before);
}
SLUICE_EXPORT int sighold(int number) noexcept {
  return action_is_recorded(number) ? change_one(SIG_BLOCK, number) : REAL(sighold)(number);
}
SLUICE_EXPORT int sigrelse(int number) noexcept {
  return action_is_recorded(number) ? change_one(SIG_UNBLOCK, number) : REAL(sigrelse)(number);
}

namespace {

// sigblock() and sigsetmask(): the first 32 signals in a word, without the others.
int change_old_mask(int how, int mask) {
  sigset_t set, before;
  sigemptyset(&set);
  set_word(set, static_cast<unsigned>(mask));
  change_mask(REAL(sigprocmask), how, &set, &before);
  return static_cast<int>(word_of(before));
}

}  // namespace

SLUICE_EXPORT int sigblock(int mask) noexcept {
  return g_settings.off ? REAL(sigblock)(mask) : change_old_mask(SIG_BLOCK, mask);
}
SLUICE_EXPORT int sigsetmask(int mask) noexcept {
  return g_settings.off ? REAL(sigsetmask)(mask) : change_old_mask(SIG_SETMASK, mask);
}
