// Waiting for signals, asking for pending ones, and jumping out of handlers: where the kernel's
// idea of SIGSEGV differs from the application's.
#include <cerrno>

#include "preload/cells/fault.h"
#include "preload/real.h"
#include "preload/settings.h"
#include "preload/signals/mask.h"

using sluice::preload::WaitForSegv;
using sluice::preload::WaitMask;

SLUICE_EXPORT int sigpending(sigset_t* set) noexcept {
  const int result = REAL(sigpending)(set);
  if (result == 0 && sluice::preload::segv_pending()) sigaddset(set, SIGSEGV);
  return result;
}
SLUICE_EXPORT int sigwait(const sigset_t* set, int* number) {
  const WaitForSegv wait(set);
  return REAL(sigwait)(set, number);
}
SLUICE_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  const WaitForSegv wait(set);
  return REAL(sigwaitinfo)(set, info);
}
SLUICE_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info,
                               const struct timespec* timeout) {
  const WaitForSegv wait(set);
  return REAL(sigtimedwait)(set, info, timeout);
}
SLUICE_EXPORT int sigsuspend(const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(sigsuspend)(wait.mask());
}
SLUICE_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* error,
                          const struct timespec* timeout, const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(pselect)(count, in, out, error, timeout, wait.mask());
}
SLUICE_EXPORT int ppoll(struct pollfd* fds, nfds_t count, const struct timespec* timeout,
                        const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(ppoll)(fds, count, timeout, wait.mask());
}
SLUICE_EXPORT int __ppoll_chk(struct pollfd* fds, nfds_t count, const struct timespec* timeout,
                              const sigset_t* mask, size_t limit) {
  const WaitMask wait(mask);
  return REAL(__ppoll_chk)(fds, count, timeout, wait.mask(), limit);
}
SLUICE_EXPORT int epoll_pwait(int fd, struct epoll_event* events, int count, int timeout,
                              const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(epoll_pwait)(fd, events, count, timeout, wait.mask());
}
SLUICE_EXPORT int epoll_pwait2(int fd, struct epoll_event* events, int count,
                               const struct timespec* timeout, const sigset_t* mask) {
  const WaitMask wait(mask);
  return REAL(epoll_pwait2)(fd, events, count, timeout, wait.mask());
}

namespace {
// A jump that restores a saved mask ends what the application's SIGSEGV handler blocked; one
// without leaves it blocked, as the kernel would.
void jumping(const struct __jmp_buf_tag* buffer) {
  if (buffer->__mask_was_saved != 0) sluice::preload::sluice_handler_left();
}
}  // namespace

SLUICE_EXPORT void siglongjmp(sigjmp_buf buffer, int value) noexcept {
  jumping(buffer);
  REAL(siglongjmp)(buffer, value);
  __builtin_unreachable();
}
SLUICE_EXPORT void longjmp(jmp_buf buffer, int value) noexcept {
  jumping(buffer);
  REAL(longjmp)(buffer, value);
  __builtin_unreachable();
}
SLUICE_EXPORT void _longjmp(jmp_buf buffer, int value) noexcept {
  jumping(buffer);
  REAL(_longjmp)(buffer, value);
  __builtin_unreachable();
}
SLUICE_EXPORT void __longjmp_chk(jmp_buf buffer, int value) {
  jumping(buffer);
  REAL(__longjmp_chk)(buffer, value);
  __builtin_unreachable();
}
