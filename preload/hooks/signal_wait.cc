// Waiting for signals, querying pending ones, and jumping out of handlers, where the kernel's mask
// differs from the application's in SIGSEGV.
#include "preload/base/real.h"
#include "preload/base/settings.h"
#include "preload/handler/mask.h"

using sluice::preload::g_segv_taken;
using sluice::preload::KernelSet;
using sluice::preload::kSegvBit;
using sluice::preload::kShadowSignal;

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
    return named_ && got == kShadowSignal && sluice::preload::take_held_segv() ? SIGSEGV : got;
  }

 private:
  const sluice::preload::HiddenBlock hidden_;
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
  const sluice::preload::HiddenBlock hidden_;
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
  if (result == 0 && sluice::preload::holds_segv() && sigismember(set, kShadowSignal) == 1) {
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
SLUICE_EXPORT int sigsuspend(const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(sigsuspend)(wait.get());
}
SLUICE_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* error,
                          const struct timespec* timeout, const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(pselect)(count, in, out, error, timeout, wait.get());
}
SLUICE_EXPORT int ppoll(struct pollfd* fds, nfds_t count, const struct timespec* timeout,
                        const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(ppoll)(fds, count, timeout, wait.get());
}
SLUICE_EXPORT int __ppoll_chk(struct pollfd* fds, nfds_t count, const struct timespec* timeout,
                              const sigset_t* mask, size_t limit) {
  const WaitMask wait(mask);
  return REAL(__ppoll_chk)(fds, count, timeout, wait.get(), limit);
}
SLUICE_EXPORT int epoll_pwait(int fd, struct epoll_event* events, int count, int timeout,
                              const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(epoll_pwait)(fd, events, count, timeout, wait.get());
}
SLUICE_EXPORT int epoll_pwait2(int fd, struct epoll_event* events, int count,
                               const struct timespec* timeout, const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(epoll_pwait2)(fd, events, count, timeout, wait.get());
}

namespace {

// A mask that was saved before SIGSEGV was taken may block SIGSEGV in the kernel: translated here.
class JumpBuffer {
 public:
  explicit JumpBuffer(struct __jmp_buf_tag* buffer) : given_(buffer) {
    if (buffer->__mask_was_saved == 0 || !g_segv_taken.load(std::memory_order_acquire)) return;
    const auto mask = sluice::preload::word_of(buffer->__saved_mask);
    if ((mask & kSegvBit) == 0) return;
    copy_ = *buffer;
    sluice::preload::set_word(copy_.__saved_mask, sluice::preload::to_kernel(mask));
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

SLUICE_EXPORT void siglongjmp(sigjmp_buf buffer, int value) noexcept {
  REAL(siglongjmp)(JumpBuffer(buffer).get(), value);
  __builtin_unreachable();
}
SLUICE_EXPORT void longjmp(jmp_buf buffer, int value) noexcept {
  REAL(longjmp)(JumpBuffer(buffer).get(), value);
  __builtin_unreachable();
}
SLUICE_EXPORT void _longjmp(jmp_buf buffer, int value) noexcept {
  REAL(_longjmp)(JumpBuffer(buffer).get(), value);
  __builtin_unreachable();
}
SLUICE_EXPORT void __longjmp_chk(jmp_buf buffer, int value) {
  REAL(__longjmp_chk)(JumpBuffer(buffer).get(), value);
  __builtin_unreachable();
}
