// Checks through the kernel whether the caller's memory can be accessed: a hook that answers in the
// kernel's place must not crash where the kernel would return EFAULT. Async-signal-safe; errno is
// preserved.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "preload/base/sys.h"
#include "protocol/page.h"

namespace sluice::preload {

// Whether the page of `address` can be read: the kernel copies a signal mask from there before it
// rejects the invalid `how` argument.
inline bool page_readable(const void* address) {
  const auto page = reinterpret_cast<uintptr_t>(address) & ~(kPage - 1);
  constexpr long kNothing = 99;
  if (page == 0) return false;  // a null mask pointer would not be read
  return sys::call(SYS_rt_sigprocmask, kNothing, static_cast<long>(page), 0, 8) != -EFAULT;
}

// Whether [address, address + size) can be written. Overwrites its first and last 8 bytes.
// REQUIRES: 8 bytes <= size <= one page.
inline bool writable(void* address, size_t size) {
  const long begin = sys::word(static_cast<char*>(address));
  const long end = begin + static_cast<long>(size) - 8;
  if (address == nullptr) return false;
  return sys::call(SYS_rt_sigprocmask, 0, 0, begin, 8) == 0 &&
         sys::call(SYS_rt_sigprocmask, 0, 0, end, 8) == 0;
}

}  // namespace sluice::preload
