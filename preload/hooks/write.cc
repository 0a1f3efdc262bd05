// Calls that pass user memory to the kernel: its cells are pinned for as long as the call runs.
#include <sys/syscall.h>

#include <cstdarg>
#include <cstring>

#include "preload/base/real.h"
#include "preload/cells/arm.h"
#include "preload/cells/pins.h"
#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/stage/identity.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/stage/redirect.h"

using namespace sluice::preload;  // NOLINT: every line here is about it

namespace {
// Counts that the kernel refuses pin nothing.
template <typename Count>
size_t parts_of(Count count) {
  return count > 0 && count <= 1024 ? static_cast<size_t>(count) : 0;
}
}  // namespace

SLUICE_EXPORT ssize_t write(int fd, const void* buffer, size_t size) {
  renew_if_lost();
  const Pins pins(buffer, size);
  return REAL(write)(fd, buffer, size);
}

// One line per call: result type, name, parameters, arguments, and what is pinned: a buffer and its
// size, or buffers and their number.
#define PINNED(result, name, parameters, arguments, ...) \
  SLUICE_EXPORT result name parameters {                 \
    const Pins pins(__VA_ARGS__);                        \
    return REAL(name) arguments;                         \
  }
PINNED(ssize_t, pwrite, (int fd, const void* b, size_t n, off_t at), (fd, b, n, at), b, n)
PINNED(ssize_t, pwrite64, (int fd, const void* b, size_t n, off64_t at), (fd, b, n, at), b, n)
PINNED(ssize_t, send, (int fd, const void* b, size_t n, int f), (fd, b, n, f), b, n)
PINNED(int, mq_send, (mqd_t q, const char* b, size_t n, unsigned p), (q, b, n, p), b, n)
PINNED(int, mq_timedsend, (mqd_t q, const char* b, size_t n, unsigned p, const struct timespec* t),
       (q, b, n, p, t), b, n)
PINNED(int, msgsnd, (int q, const void* b, size_t n, int f), (q, b, n, f), b, n + sizeof(long))

using Parts = const struct iovec*;
PINNED(ssize_t, writev, (int fd, Parts p, int n), (fd, p, n), p, parts_of(n))
PINNED(ssize_t, pwritev, (int fd, Parts p, int n, off_t at), (fd, p, n, at), p, parts_of(n))
PINNED(ssize_t, pwritev64, (int fd, Parts p, int n, off64_t at), (fd, p, n, at), p, parts_of(n))
PINNED(ssize_t, pwritev2, (int fd, Parts p, int n, off_t at, int f), (fd, p, n, at, f), p,
       parts_of(n))
PINNED(ssize_t, pwritev64v2, (int fd, Parts p, int n, off64_t at, int f), (fd, p, n, at, f), p,
       parts_of(n))
// The pipe holds references to the pages, which protection does not affect.
PINNED(ssize_t, vmsplice, (int fd, Parts p, size_t n, unsigned f), (fd, p, n, f), p, parts_of(n))
PINNED(ssize_t, process_vm_writev,
       (pid_t pid, Parts p, unsigned long n, Parts r, unsigned long m, unsigned long f) noexcept,
       (pid, p, n, r, m, f), p, parts_of(n))
// If a process reads its own memory this way, the remote buffers are in this process.
PINNED(ssize_t, process_vm_readv,
       (pid_t pid, Parts p, unsigned long n, Parts r, unsigned long m, unsigned long f) noexcept,
       (pid, p, n, r, m, f), r, pid == getpid() ? parts_of(m) : 0)

SLUICE_EXPORT ssize_t sendto(int fd, const void* buffer, size_t size, int flags,
                             const struct sockaddr* to, socklen_t to_size) {
  Pins pins(buffer, size);
  pins.add(to, to_size);
  return REAL(sendto)(fd, buffer, size, flags, to, to_size);
}

namespace {
void add_buffers(Pins& pins, const struct msghdr& message) {
  pins.add(static_cast<const void*>(message.msg_iov), message.msg_iovlen * sizeof *message.msg_iov);
  for (size_t i = 0; i < message.msg_iovlen && i < 1024; ++i) {
    pins.add(message.msg_iov[i].iov_base, message.msg_iov[i].iov_len);
  }
}
void add_message(Pins& pins, const struct msghdr& message) {
  if (message.msg_name != nullptr) pins.add(message.msg_name, message.msg_namelen);
  if (message.msg_control != nullptr) pins.add(message.msg_control, message.msg_controllen);
  add_buffers(pins, message);
}
// Switches descriptors that are passed to another process to the originals.
void pass_on(const struct msghdr* message) {
  constexpr size_t kMostControl = 4096;  // the kernel takes 253 descriptors at most
  if (!any_staged_fd() || !page_readable(message) || message->msg_control == nullptr ||
      message->msg_controllen > kMostControl) {
    return;
  }
  const auto* control = static_cast<const char*>(message->msg_control);
  if (!page_readable(control) || !page_readable(control + message->msg_controllen - 1)) return;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(message), part)) {
    if (part->cmsg_len < CMSG_LEN(0) ||
        part->cmsg_len > message->msg_controllen -
                             static_cast<size_t>(reinterpret_cast<char*>(part) - control)) {
      return;
    }
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      use_original(fd);
    }
  }
}

bool nothing_protected() { return g_high.load(std::memory_order_relaxed) == 0; }
}  // namespace

SLUICE_EXPORT ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  Pins pins;
  if (message != nullptr && !nothing_protected()) {
    pins.add(message, sizeof *message);
    add_message(pins, *message);
  }
  pass_on(message);
  return REAL(sendmsg)(fd, message, flags);
}
SLUICE_EXPORT int sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
  Pins pins;
  if (messages != nullptr && !nothing_protected()) {
    for (unsigned i = 0; i < count && i < 1024; ++i) add_message(pins, messages[i].msg_hdr);
  }
  for (unsigned i = 0; messages != nullptr && i < count && i < 1024; ++i) {
    pass_on(&messages[i].msg_hdr);
  }
  return REAL(sendmmsg)(fd, messages, count, flags);
}
namespace {
template <typename Request>
void open_buffer(const Request* request) {
  open_for_good(const_cast<const void*>(request->aio_buf), request->aio_nbytes);
}
template <typename Request>
void open_buffers(Request* const* requests, int count) {
  for (int i = 0; i < count; ++i) {
    if (requests[i] != nullptr) open_buffer(requests[i]);
  }
}
}  // namespace

// glibc's asynchronous I/O writes from threads of its own, later.
SLUICE_EXPORT int aio_write(struct aiocb* request) noexcept {
  open_buffer(request);
  return REAL(aio_write)(request);
}
SLUICE_EXPORT int aio_write64(struct aiocb64* request) noexcept {
  open_buffer(request);
  return REAL(aio_write64)(request);
}
SLUICE_EXPORT int lio_listio(int mode, struct aiocb* const* requests, int count,
                             struct sigevent* event) noexcept {
  open_buffers(requests, count);
  return REAL(lio_listio)(mode, requests, count, event);
}
SLUICE_EXPORT int lio_listio64(int mode, struct aiocb64* const* requests, int count,
                               struct sigevent* event) noexcept {
  open_buffers(requests, count);
  return REAL(lio_listio64)(mode, requests, count, event);
}

namespace {
// Pins the buffers of calls that may transfer less than requested, and disarms mappings that the
// call changes.
void prepare_system_call(Pins& pins, long number, const long (&words)[6]) {
  const auto pointer = [&](int i) { return reinterpret_cast<const void*>(words[i]); };
  const auto size = [&](int i) { return static_cast<size_t>(words[i]); };
  switch (number) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_sendto:
      pins.add(pointer(1), size(2));
      break;
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_vmsplice:
    case SYS_process_vm_writev:
      pins.add(static_cast<Parts>(pointer(1)), parts_of(size(2)));
      break;
    case SYS_sendmsg:
      if (const auto* message = static_cast<const struct msghdr*>(pointer(1))) {
        pins.add(message, sizeof *message);
        add_buffers(pins, *message);
      }
      break;
    case SYS_mmap:
      if ((words[3] & MAP_FIXED) != 0) disarm(pointer(0), size(1));
      break;
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
    case SYS_mremap:
    case SYS_mlock:
    case SYS_mlock2:
    case SYS_madvise:
      disarm(pointer(0), size(1));
      break;
    case SYS_mlockall:
      disarm_all();
      break;
    default:
      break;
  }
}
}  // namespace

// Always passes six words: the kernel ignores those that a call does not take.
SLUICE_EXPORT long syscall(long number, ...) noexcept {
  long words[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  const IdentityChange change(changes_identity(number));
  const auto real = [&] {
    return REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  };
  if (changes_mounts(number)) {
    const long done = real();
    if (done == 0) mounts_changed();
    return done;
  }
  if (nothing_protected()) return real();
  Pins pins;
  prepare_system_call(pins, number, words);
  return retrying(real, {reinterpret_cast<void*>(words[0]), reinterpret_cast<void*>(words[1]),
                         reinterpret_cast<void*>(words[2]), reinterpret_cast<void*>(words[3]),
                         reinterpret_cast<void*>(words[4])});
}
