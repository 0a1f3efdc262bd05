// A mapping may outlive the optimizer that it was announced to: one that was killed. Then another
// is found or started, and told again. One that was asked to stop is not replaced until the job
// opens or maps data anew. Where no hooked call comes any more, the mapping stays without
// pre-caching.
//
// Not from a signal handler; any thread. A look costs a load where nothing is mapped, else the
// time of day; once in kRenewNs the optimizer's life is asked for.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::preload {

// When to look next; UINT64_MAX while no mapping is followed. Any thread, relaxed.
extern std::atomic<uint64_t> g_next_look_ns;

void renewal_wanted();      // a mapping is followed from now on
void renewal_after_fork();  // in a fork's child; single-threaded, async-signal-safe
void look_for_loss();       // the slow half of renew_if_lost()

// In hooks of calls that jobs make all the time. errno is kept.
inline void renew_if_lost() {
  if (g_next_look_ns.load(std::memory_order_relaxed) != UINT64_MAX) look_for_loss();
}

}  // namespace sluice::preload
