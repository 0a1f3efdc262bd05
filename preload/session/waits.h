// How long the job waited for data, on the wall clock.
//
// Three sources: waits that a training loop reports (sluice_waited), calls that read data and took
// longer than a copy from memory, and page faults between two trips of a thread. Overlapping times
// count once over all threads of the process and of its fork children. Everything is measured after
// the fact, so a thread that is cancelled or jumps out of a call leaves no state behind. The sum is
// ClientMetric::waited_ns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// The calling thread waited for data in [begin_ns, end_ns), CLOCK_MONOTONIC. Async-signal-safe.
void note_wait(uint64_t begin_ns, uint64_t end_ns);

// A loader's loop has waited for `ns` up to now. Any thread.
void loop_waited(uint64_t ns);

// Reads of this process and its fork children no longer count as waits: they are workers of a
// training loop that reports its own waits. Any thread.
void reads_for_others();
bool reads_for_others_now();

// The calling thread has tripped a checkpoint, or is about to end: if it had major page faults
// since its last trip, the time that it was off the processor since then counts as waited.
// Async-signal-safe.
void note_faults();
// In a fork's child: the kernel's counters of the thread start from zero.
void waits_after_fork();
// Before a fork: from now on waits are united with those of children. `shared` is zeroed memory of
// waits_size() bytes that stays mapped in both.
void share_waits(void* shared);
size_t waits_size();

}  // namespace sluice::preload
