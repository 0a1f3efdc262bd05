// Whether the caller's memory can be used, asked of the kernel: a hook that answers in its place
// must fail with EFAULT where the kernel would, and not crash. Async-signal-safe; keeps errno.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "preload/base/sys.h"
#include "protocol/page.h"

namespace sluice::preload {

// The page of `address` can be read: the kernel copies a mask from there before it refuses what is
// to be done with it.
inline bool page_readable(const void* address) {
  const auto page = reinterpret_cast<uintptr_t>(address) & ~(kPage - 1);
  constexpr long kNothing = 99;
  if (page == 0) return false;  // a mask at address 0 is none
  return sys::call(SYS_rt_sigprocmask, kNothing, static_cast<long>(page), 0, 8) != -EFAULT;
}

// [address, address + size) can be written; its first and last 8 bytes are. REQUIRES: at most a
// page long, 8 bytes at least.
inline bool writable(void* address, size_t size) {
  const long begin = sys::word(static_cast<char*>(address));
  const long end = begin + static_cast<long>(size) - 8;
  if (address == nullptr) return false;
  return sys::call(SYS_rt_sigprocmask, 0, 0, begin, 8) == 0 &&
         sys::call(SYS_rt_sigprocmask, 0, 0, end, 8) == 0;
}

}  // namespace sluice::preload
