// For calls that read small arguments (paths, names, structures) from user memory before they have
// any effect: EFAULT means that nothing happened, so the call is made once more with the memory
// pinned. Costs nothing unless a call fails with EFAULT.
#pragma once

#include <cerrno>
#include <initializer_list>

#include "preload/cells/pins.h"
#include "preload/session/events.h"

namespace sluice::preload {

inline constexpr size_t kRetryBytes = 64 << 10;  // the longest such argument (an xattr's value)

template <typename T>
bool call_failed(T* result) {
  return result == nullptr;
}
inline bool call_failed(int result) { return result == -1; }
inline bool call_failed(long result) { return result == -1; }

template <typename Call>
auto retrying(Call call, std::initializer_list<const void*> arguments) {
  auto result = call();
  if (__builtin_expect(!call_failed(result) || errno != EFAULT, 1)) return result;
  Pins pins;
  for (const void* argument : arguments) {
    if (argument != nullptr) pins.add(argument, kRetryBytes);
  }
  if (!pins.any()) {
    errno = EFAULT;
    return result;
  }
  count(protocol::ClientMetric::faults_retried);
  return call();
}

}  // namespace sluice::preload
