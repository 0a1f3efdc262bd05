// Calls that pass user memory to the kernel: its cells are pinned for as long as the call runs.
#include <cstdarg>
#include <cstring>

#include "preload/base/real.h"
#include "preload/cells/pins.h"
#include "preload/cells/renew.h"
#include "preload/cells/retry.h"
#include "preload/cells/user_calls.h"
#include "preload/stage/identity.h"
#include "preload/stage/original.h"
#include "preload/stage/probe.h"
#include "preload/stage/redirect.h"

using sluice::preload::IdentityChange;
using sluice::preload::open_for_good;
using sluice::preload::Pins;
using sluice::preload::renew_if_lost;
using sluice::preload::retrying;

SLUICE_EXPORT ssize_t write(int fd, const void* buffer, size_t size) {
  renew_if_lost();
  const Pins pins(buffer, size);
  return REAL(write)(fd, buffer, size);
}
SLUICE_EXPORT ssize_t pwrite(int fd, const void* buffer, size_t size, off_t offset) {
  const Pins pins(buffer, size);
  return REAL(pwrite)(fd, buffer, size, offset);
}
SLUICE_EXPORT ssize_t pwrite64(int fd, const void* buffer, size_t size, off64_t offset) {
  const Pins pins(buffer, size);
  return REAL(pwrite64)(fd, buffer, size, offset);
}

namespace {
size_t parts_of(int count) { return count > 0 && count <= 1024 ? static_cast<size_t>(count) : 0; }
}  // namespace

SLUICE_EXPORT ssize_t writev(int fd, const struct iovec* parts, int count) {
  const Pins pins(parts, parts_of(count));
  return REAL(writev)(fd, parts, count);
}
SLUICE_EXPORT ssize_t pwritev(int fd, const struct iovec* parts, int count, off_t offset) {
  const Pins pins(parts, parts_of(count));
  return REAL(pwritev)(fd, parts, count, offset);
}
SLUICE_EXPORT ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t offset) {
  const Pins pins(parts, parts_of(count));
  return REAL(pwritev64)(fd, parts, count, offset);
}
SLUICE_EXPORT ssize_t pwritev2(int fd, const struct iovec* parts, int count, off_t offset,
                               int flags) {
  const Pins pins(parts, parts_of(count));
  return REAL(pwritev2)(fd, parts, count, offset, flags);
}
SLUICE_EXPORT ssize_t pwritev64v2(int fd, const struct iovec* parts, int count, off64_t offset,
                                  int flags) {
  const Pins pins(parts, parts_of(count));
  return REAL(pwritev64v2)(fd, parts, count, offset, flags);
}
SLUICE_EXPORT ssize_t vmsplice(int fd, const struct iovec* parts, size_t count, unsigned flags) {
  // The pipe holds references to the pages, which protection does not affect.
  const Pins pins(parts, count <= 1024 ? count : 0);
  return REAL(vmsplice)(fd, parts, count, flags);
}
SLUICE_EXPORT ssize_t send(int fd, const void* buffer, size_t size, int flags) {
  const Pins pins(buffer, size);
  return REAL(send)(fd, buffer, size, flags);
}
SLUICE_EXPORT ssize_t sendto(int fd, const void* buffer, size_t size, int flags,
                             const struct sockaddr* to, socklen_t to_size) {
  Pins pins(buffer, size);
  pins.add(to, to_size);
  return REAL(sendto)(fd, buffer, size, flags, to, to_size);
}

namespace {
void add_message(Pins& pins, const struct msghdr& message) {
  if (message.msg_name != nullptr) pins.add(message.msg_name, message.msg_namelen);
  if (message.msg_control != nullptr) pins.add(message.msg_control, message.msg_controllen);
  pins.add(message.msg_iov, message.msg_iovlen * sizeof *message.msg_iov);
  for (size_t i = 0; i < message.msg_iovlen && i < 1024; ++i) {
    pins.add(message.msg_iov[i].iov_base, message.msg_iov[i].iov_len);
  }
}
// Switches descriptors that are passed to another process to the originals.
void pass_on(const struct msghdr* message) {
  constexpr size_t kMostControl = 4096;  // the kernel takes 253 descriptors at most
  using sluice::preload::page_readable;
  if (!sluice::preload::any_staged_fd() || !page_readable(message) ||
      message->msg_control == nullptr || message->msg_controllen > kMostControl) {
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
      sluice::preload::use_original(fd);
    }
  }
}

bool nothing_protected() { return sluice::preload::g_high.load(std::memory_order_relaxed) == 0; }
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
SLUICE_EXPORT ssize_t process_vm_writev(pid_t pid, const struct iovec* parts, unsigned long count,
                                        const struct iovec* remote, unsigned long remote_count,
                                        unsigned long flags) noexcept {
  const Pins pins(parts, count <= 1024 ? count : 0);
  return REAL(process_vm_writev)(pid, parts, count, remote, remote_count, flags);
}
// If a process reads its own memory this way, the remote buffers are in this process.
SLUICE_EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec* parts, unsigned long count,
                                       const struct iovec* remote, unsigned long remote_count,
                                       unsigned long flags) noexcept {
  const Pins pins(remote, remote_count <= 1024 && pid == getpid() ? remote_count : 0);
  return REAL(process_vm_readv)(pid, parts, count, remote, remote_count, flags);
}
SLUICE_EXPORT int mq_send(mqd_t queue, const char* text, size_t size, unsigned priority) {
  const Pins pins(text, size);
  return REAL(mq_send)(queue, text, size, priority);
}
SLUICE_EXPORT int mq_timedsend(mqd_t queue, const char* text, size_t size, unsigned priority,
                               const struct timespec* timeout) {
  const Pins pins(text, size);
  return REAL(mq_timedsend)(queue, text, size, priority, timeout);
}
SLUICE_EXPORT int msgsnd(int queue, const void* message, size_t size, int flags) {
  const Pins pins(message, size + sizeof(long));
  return REAL(msgsnd)(queue, message, size, flags);
}

// glibc's asynchronous I/O writes from threads of its own, later.
SLUICE_EXPORT int aio_write(struct aiocb* request) noexcept {
  open_for_good(const_cast<const void*>(request->aio_buf), request->aio_nbytes);
  return REAL(aio_write)(request);
}
SLUICE_EXPORT int aio_write64(struct aiocb64* request) noexcept {
  open_for_good(const_cast<const void*>(request->aio_buf), request->aio_nbytes);
  return REAL(aio_write64)(request);
}
SLUICE_EXPORT int lio_listio(int mode, struct aiocb* const* requests, int count,
                             struct sigevent* event) noexcept {
  for (int i = 0; i < count; ++i) {
    if (requests[i] == nullptr) continue;
    open_for_good(const_cast<const void*>(requests[i]->aio_buf), requests[i]->aio_nbytes);
  }
  return REAL(lio_listio)(mode, requests, count, event);
}
SLUICE_EXPORT int lio_listio64(int mode, struct aiocb64* const* requests, int count,
                               struct sigevent* event) noexcept {
  for (int i = 0; i < count; ++i) {
    if (requests[i] == nullptr) continue;
    open_for_good(const_cast<const void*>(requests[i]->aio_buf), requests[i]->aio_nbytes);
  }
  return REAL(lio_listio64)(mode, requests, count, event);
}

// Always passes six words: the kernel ignores those that a call does not take.
SLUICE_EXPORT long syscall(long number, ...) noexcept {
  long words[6];
  va_list arguments;
  va_start(arguments, number);
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  const IdentityChange change(sluice::preload::changes_identity(number));
  const auto real = [&] {
    return REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  };
  if (sluice::preload::changes_mounts(number)) {
    const long done = real();
    if (done == 0) sluice::preload::mounts_changed();
    return done;
  }
  if (nothing_protected()) return real();
  Pins pins;
  sluice::preload::pin_system_call(pins, number, words);
  return retrying(real, {reinterpret_cast<void*>(words[0]), reinterpret_cast<void*>(words[1]),
                         reinterpret_cast<void*>(words[2]), reinterpret_cast<void*>(words[3]),
                         reinterpret_cast<void*>(words[4])});
}
