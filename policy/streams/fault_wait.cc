#include "policy/streams/fault_wait.h"

#include <algorithm>

namespace sluice::policy {

uint64_t fault_wait_ns(std::span<const ThreadTime> before, std::span<const ThreadTime> after,
                       uint64_t took_ns) {
  uint64_t most = 0, waited = 0;
  for (const ThreadTime& thread : after) {
    const auto was = std::ranges::find(before, thread.tid, &ThreadTime::tid);
    // One that began meanwhile may have waited as long as the others' time, which is not known.
    if (was == before.end() || thread.faults <= was->faults) continue;
    const uint64_t faults = thread.faults - was->faults;
    if (faults <= most) continue;
    most = faults;
    const uint64_t busy = thread.busy_ns - std::min(thread.busy_ns, was->busy_ns);
    waited = took_ns - std::min(took_ns, busy);
  }
  return waited;
}

}  // namespace sluice::policy
