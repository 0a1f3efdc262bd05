// A mapping may outlive the optimizer that it was reported to, if that was killed. Then another
// optimizer is found or started, and the mapping is reported to it. An optimizer that was asked to
// stop is not replaced until the job opens or maps data again. If the job makes no more hooked
// calls, the mapping has no prefetching from then on.
//
// Not from a signal handler; any thread. A check costs one load where nothing is mapped, else a
// clock read; once in kRenewNs it checks whether the optimizer lives.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::preload {

// When to check next; UINT64_MAX while no mapping is followed. Any thread, relaxed.
extern std::atomic<uint64_t> g_next_look_ns;

void renewal_wanted();      // a mapping is followed from now on
void renewal_after_fork();  // in a fork's child; single-threaded, async-signal-safe
void look_for_loss();       // the slow path of renew_if_lost()

// In hooks of calls that jobs make frequently. errno is preserved.
inline void renew_if_lost() {
  if (g_next_look_ns.load(std::memory_order_relaxed) != UINT64_MAX) look_for_loss();
}

}  // namespace sluice::preload
