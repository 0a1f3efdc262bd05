// Waiting for signals, querying pending ones, and jumping out of handlers, where the kernel's mask
// differs from the application's in SIGSEGV.
#include "preload/base/real.h"
#include "preload/base/settings.h"
#include "preload/handler/mask.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {

// A set of signals that the caller waits for. A SIGSEGV that was sent while blocked is pending as a
// shadow; one that is sent during the call arrives as itself.
class Awaited {
 public:
  explicit Awaited(const sigset_t* set)
      : hidden_(set != nullptr && sigismember(set, SIGSEGV) == 1), given_(set) {
    if (set == nullptr || !g_segv_taken.load(std::memory_order_acquire)) return;
    named_ = sigismember(set, SIGSEGV) == 1;
    if (!named_) return;
    set_ = *set;
    sigaddset(&set_, kShadowSignal);
    given_ = &set_;
  }
  const sigset_t* set() const { return given_; }
  int number(int got) const {
    return named_ && got == kShadowSignal && take_held_segv() ? SIGSEGV : got;
  }

 private:
  const HiddenBlock hidden_;
  sigset_t set_;
  const sigset_t* given_;
  bool named_ = false;
};

// A mask that replaces the thread's during a blocking call. nullptr: none.
class WaitMask {
 public:
  explicit WaitMask(const sigset_t* mask)
      : hidden_(mask != nullptr && sigismember(mask, SIGSEGV) == 0), set_(mask) {}
  const sigset_t* get() const { return set_.get(); }

 private:
  const HiddenBlock hidden_;
  const KernelSet set_;
};

int taken(const Awaited& awaited, int got, siginfo_t* info) {
  const int number = awaited.number(got);
  if (number != got && info != nullptr) info->si_signo = number;
  return number;
}

}  // namespace

SLUICE_EXPORT int sigpending(sigset_t* set) noexcept {
  const int result = REAL(sigpending)(set);
  if (result == 0 && holds_segv() && sigismember(set, kShadowSignal) == 1) {
    sigdelset(set, kShadowSignal);
    sigaddset(set, SIGSEGV);
  }
  return result;
}
SLUICE_EXPORT int sigwait(const sigset_t* set, int* number) {
  const Awaited awaited(set);
  const int result = REAL(sigwait)(awaited.set(), number);
  if (result == 0) *number = awaited.number(*number);
  return result;
}
SLUICE_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  const Awaited awaited(set);
  return taken(awaited, REAL(sigwaitinfo)(awaited.set(), info), info);
}
SLUICE_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info,
                               const struct timespec* timeout) {
  const Awaited awaited(set);
  return taken(awaited, REAL(sigtimedwait)(awaited.set(), info, timeout), info);
}

// One line per call: name, parameters, arguments, in which `wait` replaces `mask`.
#define WAITING(name, parameters, arguments) \
  SLUICE_EXPORT int name parameters {        \
    const WaitMask wait(mask);               \
    return REAL(name) arguments;             \
  }
using Time = const struct timespec*;
WAITING(sigsuspend, (const sigset_t* mask), (wait.get()))
WAITING(pselect, (int n, fd_set* in, fd_set* out, fd_set* bad, Time t, const sigset_t* mask),
        (n, in, out, bad, t, wait.get()))
WAITING(ppoll, (struct pollfd * p, nfds_t n, Time t, const sigset_t* mask), (p, n, t, wait.get()))
WAITING(__ppoll_chk, (struct pollfd * p, nfds_t n, Time t, const sigset_t* mask, size_t m),
        (p, n, t, wait.get(), m))
WAITING(epoll_pwait, (int fd, struct epoll_event* e, int n, int t, const sigset_t* mask),
        (fd, e, n, t, wait.get()))
WAITING(epoll_pwait2, (int fd, struct epoll_event* e, int n, Time t, const sigset_t* mask),
        (fd, e, n, t, wait.get()))

namespace {

// A mask that was saved before SIGSEGV was taken may block SIGSEGV in the kernel: translated here.
class JumpBuffer {
 public:
  explicit JumpBuffer(struct __jmp_buf_tag* buffer) : given_(buffer) {
    if (buffer->__mask_was_saved == 0 || !g_segv_taken.load(std::memory_order_acquire)) return;
    const auto mask = word_of(buffer->__saved_mask);
    if ((mask & kSegvBit) == 0) return;
    copy_ = *buffer;
    set_word(copy_.__saved_mask, to_kernel(mask));
    given_ = &copy_;
  }
  struct __jmp_buf_tag* get() {
    return given_;
  }

 private:
  struct __jmp_buf_tag copy_;
  struct __jmp_buf_tag* given_;
};

}  // namespace

// Without the address sanitizer: the frame is left by a jump, and its poisoned memory would stay
// so.
#define JUMP(name, except)                                                                   \
  SLUICE_EXPORT __attribute__((no_sanitize("address"))) void name(jmp_buf buffer, int value) \
      except {                                                                               \
    REAL(name)(JumpBuffer(buffer).get(), value);                                             \
    __builtin_unreachable();                                                                 \
  }
JUMP(siglongjmp, noexcept)
JUMP(longjmp, noexcept)
JUMP(_longjmp, noexcept)
JUMP(__longjmp_chk, )
