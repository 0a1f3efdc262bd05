// READ BEFORE CHANGING: runs inside the fault handler; the rules of fault_inside.cc hold until
// the application's own handler is entered.
#include <cerrno>
#include <cstring>

#include "preload/cells/fault.h"
#include "preload/crash_trace.h"
#include "preload/session/events.h"
#include "preload/signals/actions.h"
#include "preload/signals/mask.h"
#include "preload/sys.h"
#include "preload/thread_state.h"

namespace sluice::preload {
namespace {

constexpr sys::SignalSet kSegv = sys::signal_bit(SIGSEGV);

sys::SignalSet to_kernel(const sigset_t& set) {
  sys::SignalSet mask;
  memcpy(&mask, &set, sizeof mask);
  return mask;
}

void store(sigset_t& set, sys::SignalSet mask) { memcpy(&set, &mask, sizeof mask); }

bool on_altstack(const ucontext_t& context, uintptr_t sp) {
  const auto base = reinterpret_cast<uintptr_t>(context.uc_stack.ss_sp);
  return context.uc_stack.ss_size != 0 && sp - base < context.uc_stack.ss_size;
}

// Lies on the stack while an application's handler runs. A handler may be left by siglongjmp
// (hooked), setcontext or an exception: then the stack has moved, or something else lies here.
struct Token {
  uint64_t value;
  Token() : value(reinterpret_cast<uintptr_t>(this) ^ kHandlerToken) {}
  static bool lies_at(uintptr_t address) {
    return reinterpret_cast<const volatile Token*>(address)->value == (address ^ kHandlerToken);
  }
};
constexpr uintptr_t kDeepestHandler = 8U << 20;  // bytes of stack that a handler may use

// SIGSEGV counts as blocked while the application's handler runs. If that was left without a
// word, it no longer does.
void notice_left_handler(const ucontext_t& context) {
  const uintptr_t token = t_state.handler_sp;
  if (token == 0) return;
  const auto sp = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
  const bool same_stack = on_altstack(context, sp) == t_state.handler_on_altstack;
  if (same_stack && sp <= token && token - sp < kDeepestHandler && Token::lies_at(token)) return;
  sluice_handler_left();
}

// The default action. A fault is raised again by its instruction, and what the kernel then does
// is what it would have done without us. A sent signal is sent again, with the same siginfo.
void die(siginfo_t* info, bool synchronous, bool ignore) {
  crash_trace();
  restore_kernel_action(ignore);
  if (synchronous) return;
  sys::call(SYS_rt_tgsigqueueinfo, sys::pid(), sys::tid(), SIGSEGV, sys::word(info));
}

void call_application(const struct sigaction& action, siginfo_t* info, ucontext_t* context) {
  const sys::SignalSet interrupted = to_kernel(context->uc_sigmask);
  const sys::SignalSet mask = (interrupted | to_kernel(action.sa_mask)) & ~kSegv;
  const bool defer = (action.sa_flags & SA_NODEFER) == 0;
  const bool was_blocked = t_state.segv_blocked;
  uintptr_t here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const bool on_alt = on_altstack(*context, here);
  const bool interrupted_on_alt =
      on_altstack(*context, static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]));
  if (was_blocked) store(context->uc_sigmask, interrupted | kSegv);
  const bool wrong_stack = on_alt && !interrupted_on_alt && (action.sa_flags & SA_ONSTACK) == 0;
  if (wrong_stack && redeliver_on_interrupted_stack(action, info, context, mask)) {
    if (defer) {
      // redeliver_on_interrupted_stack put the token behind the frame's siginfo; its return
      // runs handler_left().
      t_state.handler_sp = redelivered_token(context);
      t_state.handler_on_altstack = false;
      t_state.outer_blocked = was_blocked;
      t_state.segv_blocked = true;
    }
    return;
  }
  const volatile Token token;
  const uintptr_t outer_sp = t_state.handler_sp;
  const bool outer_alt = t_state.handler_on_altstack;
  const bool outer_blocked = t_state.outer_blocked;
  if (defer) {
    t_state.handler_sp = reinterpret_cast<uintptr_t>(&token);
    t_state.handler_on_altstack = on_alt;
    t_state.outer_blocked = was_blocked;
  }
  // sa_mask may name SIGSEGV itself, which blocks it whatever SA_NODEFER says.
  t_state.segv_blocked = was_blocked || defer || (to_kernel(action.sa_mask) & kSegv) != 0;
  sys::set_mask(mask);
  // The kernel calls every handler with three arguments, SA_SIGINFO or not.
  action.sa_sigaction(SIGSEGV, info, context);
  sys::set_mask(sys::kAllSignals);
  t_state.handler_sp = outer_sp;
  t_state.handler_on_altstack = outer_alt;
  t_state.outer_blocked = outer_blocked;
  // What the handler wrote into the saved mask becomes the thread's, SIGSEGV in our books only.
  const sys::SignalSet after = to_kernel(context->uc_sigmask);
  store(context->uc_sigmask, after & ~kSegv);
  set_segv_blocked((after & kSegv) != 0);  // one that was sent meanwhile comes on return
}

}  // namespace

extern "C" void sluice_handler_left() {
  if (t_state.handler_sp == 0) return;
  t_state.handler_sp = 0;
  set_segv_blocked(t_state.outer_blocked);
}

void forward_fault(siginfo_t* info, ucontext_t* context) {
  const int saved_errno = errno;
  count(protocol::ClientMetric::faults_forwarded);
  const bool synchronous = info->si_code > 0;
  notice_left_handler(*context);
  const bool blocked = t_state.segv_blocked;
  if (!synchronous && blocked) {
    // Sent while blocked: it waits, as in the kernel, until sigprocmask unblocks it.
    t_state.pending = true;
    t_state.pending_info = *info;
    return;
  }
  const struct sigaction action = application_action(!blocked);
  if (synchronous && blocked) {
    die(info, true, false);  // the kernel forces the default on a blocked fault
  } else if (action.sa_handler == SIG_DFL) {
    die(info, synchronous, false);
  } else if (action.sa_handler == SIG_IGN) {
    if (synchronous) die(info, true, true);
  } else {
    errno = saved_errno;
    call_application(action, info, context);
  }
}

}  // namespace sluice::preload
