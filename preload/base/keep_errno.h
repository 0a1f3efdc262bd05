// A hook's own work must not change errno.
#pragma once

#include <cerrno>

namespace sluice::preload {

// Restores errno at the end of a scope. Async-signal-safe.
struct KeepErrno {
  int saved = errno;
  KeepErrno() = default;
  ~KeepErrno() { errno = saved; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
};

}  // namespace sluice::preload
