// Events for the optimizer. Async-signal-safe, lock-free, never waits; without a session, or with
// a full ring, an event is dropped (and counted).
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/base/thread_state.h"
#include "protocol/metrics.h"
#include "protocol/ring.h"

namespace sluice::preload {

void emit_trip(uint32_t file, uint64_t offset, uint64_t length, uintptr_t pc, uint16_t flags);
void emit_read(uint32_t file, uint64_t offset, uint64_t length, uint16_t flags);
void emit_mapped(uint32_t file, uint64_t offset, uint64_t length, uintptr_t address,
                 uint16_t flags);
void emit_unmapped(uint32_t file, uintptr_t address);
void emit_zapped(uint32_t file, uint64_t offset, uint64_t length);
void emit_random(uint32_t file);
// kSampleBegin and kSampleEnd of a dataset; `key` is protocol::sample_key.
void emit_sample_begin(uint32_t dataset, uint64_t key);
// `given`, `left`: numbers of copies, as defined for kSampleEnd.
void emit_sample_end(uint32_t dataset, uint64_t key, uint32_t given, uint32_t left);
void emit_part(uint32_t file, uint64_t offset, uint64_t length, uint64_t key);

// An event's flags for the calling thread: whether it is within a sample.
inline uint16_t sample_flags() { return t_state.samples_begun != 0 ? protocol::kFlagSample : 0; }

void count(protocol::ClientMetric metric, uint64_t by = 1);

// Whether this process has counted anything or had a session.
extern std::atomic<bool> g_something_to_report;

// What was counted while this process had no slot.
extern std::atomic<uint64_t> g_unsent_metrics[protocol::kClientMetricCount];

}  // namespace sluice::preload
