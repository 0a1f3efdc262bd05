// A hook's own work must not be seen in errno.
#pragma once

#include <cerrno>

namespace sluice::preload {

// Puts errno back at the end of a scope. Async-signal-safe.
struct KeepErrno {
  int saved = errno;
  KeepErrno() = default;
  ~KeepErrno() { errno = saved; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
};

}  // namespace sluice::preload
