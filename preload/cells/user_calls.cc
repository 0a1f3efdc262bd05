#include "preload/cells/user_calls.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "preload/cells/arm.h"

namespace sluice::preload {

void pin_system_call(Pins& pins, long number, const long (&words)[6]) {
  const auto pointer = [&](int i) { return reinterpret_cast<const void*>(words[i]); };
  const auto size = [&](int i) { return static_cast<size_t>(words[i]); };
  const auto vectors = [&](int i, size_t count) {
    if (count > 1024) return;
    const auto* parts = static_cast<const struct iovec*>(pointer(i));
    pins.add(parts, count * sizeof *parts);
    for (size_t k = 0; k < count; ++k) pins.add(parts[k].iov_base, parts[k].iov_len);
  };
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
      vectors(1, size(2));
      break;
    case SYS_process_vm_writev:
      vectors(1, size(2));
      break;
    case SYS_sendmsg: {
      const auto* message = static_cast<const struct msghdr*>(pointer(1));
      if (message != nullptr) {
        pins.add(message, sizeof *message);
        pins.add(message->msg_iov, message->msg_iovlen * sizeof *message->msg_iov);
        for (size_t k = 0; k < message->msg_iovlen && k < 1024; ++k) {
          pins.add(message->msg_iov[k].iov_base, message->msg_iov[k].iov_len);
        }
      }
      break;
    }
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

}  // namespace sluice::preload
