// How long the job waited for data, on the wall clock.
//
// Three sources, of which overlapping times count once over all threads of the process and of its
// fork children: what a training loop says of itself (sluice_waited), calls that read data and took
// longer than a copy from memory does, and page faults between two trips of a thread. Everything is
// measured after the fact, so a thread that is cancelled or jumps out of a call leaves nothing
// behind. The sum is ClientMetric::waited_ns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::preload {

// The calling thread waited for data in [begin_ns, end_ns), CLOCK_MONOTONIC. Async-signal-safe.
void note_wait(uint64_t begin_ns, uint64_t end_ns);

// A loader's loop has waited for `ns` up to now. Any thread.
void loop_waited(uint64_t ns);

// What this process and its fork children read from now on is nobody's wait: they are workers of a
// loop that says itself how long it waited. Any thread.
void reads_for_others();
bool reads_for_others_now();

// The calling thread has tripped a checkpoint, or is about to end: if it had page faults that went
// to storage since its last trip, the time that it was off the processor since then was waited.
// Async-signal-safe.
void note_faults();
// In a fork's child: the thread's counters begin again.
void waits_after_fork();
// Before a fork: from now on waits are counted together with those of children. `shared` is zeroed
// memory of waits_size() bytes that stays mapped in both.
void share_waits(void* shared);
size_t waits_size();

}  // namespace sluice::preload
