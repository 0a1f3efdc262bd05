// READ BEFORE CHANGING: runs inside the fault handler; the rules of fault_inside.cc hold until
// the application's own handler is entered.
#include <cerrno>
#include <cstring>

#include "preload/base/sys.h"
#include "preload/handler/actions.h"
#include "preload/handler/fault.h"
#include "preload/handler/mask.h"
#include "preload/session/events.h"

// Last.
#include "preload/handler/poison.h"

namespace sluice::preload {

constinit CrashHook g_before_crash = nullptr;

namespace {

bool on_altstack(const ucontext_t& context, uintptr_t sp) {
  const auto base = reinterpret_cast<uintptr_t>(context.uc_stack.ss_sp);
  return context.uc_stack.ss_size != 0 && sp - base < context.uc_stack.ss_size;
}

// The application writes masks in its own terms: the saved mask is translated to the kernel's.
void translate_saved_mask(ucontext_t* context) {
  const sys::SignalSet mask = word_of(context->uc_sigmask);
  if ((mask & kSegvBit) != 0) set_word(context->uc_sigmask, to_kernel(mask));
}

// The default action. A fault is raised again by its instruction, and the kernel then does what it
// would have done without Sluice. A sent signal is sent again, with the same siginfo.
void die(int signal, siginfo_t* info, bool synchronous, bool ignore) {
  if (g_before_crash != nullptr) g_before_crash();
  restore_kernel_action(signal, ignore);
  if (synchronous) return;
  sys::call(SYS_rt_tgsigqueueinfo, sys::pid(), sys::tid(), signal, sys::word(info));
}

void call_application(const struct sigaction& action, int signal, siginfo_t* info,
                      ucontext_t* context) {
  // The saved mask has the shadow if the signal was delivered as a shadow during a sigsuspend().
  sys::SignalSet mask =
      (word_of(context->uc_sigmask) & ~kShadowBit) | to_kernel(word_of(action.sa_mask));
  if ((action.sa_flags & SA_NODEFER) == 0) mask |= to_kernel(kSegvBit);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const auto interrupted = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
  const bool wrong_stack = on_altstack(*context, here) && !on_altstack(*context, interrupted) &&
                           (action.sa_flags & SA_ONSTACK) == 0;
  if (wrong_stack && redeliver_on_interrupted_stack(action, signal, info, context, mask)) return;
  sys::set_mask(mask);
  // The kernel calls every handler with three arguments, SA_SIGINFO or not.
  action.sa_sigaction(signal, info, context);
  sys::set_mask(sys::kAllSignals);
  translate_saved_mask(context);
}

void deliver(int signal, siginfo_t* info, ucontext_t* context, bool synchronous) {
  const int saved_errno = errno;
  const struct sigaction action = application_action(signal, true);
  if (action.sa_handler == SIG_DFL) {
    die(signal, info, synchronous, false);
  } else if (action.sa_handler == SIG_IGN) {
    if (synchronous) die(signal, info, true, true);
  } else {
    errno = saved_errno;
    call_application(action, signal, info, context);
  }
}

}  // namespace

extern "C" void sluice_frame_returns(ucontext_t* context) { translate_saved_mask(context); }

void forward_fault(siginfo_t* info, ucontext_t* context) {
  count(protocol::ClientMetric::faults_forwarded);
  const bool synchronous = info->si_code > 0;
  const bool blocked = (word_of(context->uc_sigmask) & kShadowBit) != 0;
  if (!blocked) {
    deliver(SIGSEGV, info, context, synchronous);
  } else if (synchronous) {
    die(SIGSEGV, info, true, false);  // the kernel forces the default action if blocked
  } else {
    hold_segv(info, info->si_code == SI_TKILL);
  }
}

void shadow_handler(int, siginfo_t* info, void* raw_context) {
  // Not sent again: sigsuspend's mask admitted the signal, but the thread's own may block it.
  const int signal = take_held_segv() ? SIGSEGV : kShadowSignal;
  info->si_signo = signal;
  deliver(signal, info, static_cast<ucontext_t*>(raw_context), false);
}

}  // namespace sluice::preload
