// The one table of metrics. The counters in shared memory, `sluice status`, its --json, the
// end-of-run line and the report are made from it, so that a metric is added in one place.
//
// Each line: X(name, unit, help). Names are the JSON keys. Counters only grow within a session; a
// value in permille is the latest one.
#pragma once

#include <cstdint>

// Written by the library, one set per process (slot); a session's value is the sum.
#define SLUICE_CLIENT_METRICS(X)                                                             \
  X(checkpoints_hit, "count", "first touches seen by a memory checkpoint")                   \
  X(cells_rearmed, "count", "checkpoints put back behind the reader")                        \
  X(cells_sticky, "count", "cells left open because they are touched again and again")       \
  X(mappings_armed, "count", "mappings that got checkpoints")                                \
  X(mappings_observed, "count", "mappings followed by page-table observation")               \
  X(mappings_random, "count", "mappings opened for good because access is random")           \
  X(mappings_opened, "count", "mappings opened for good because protection was in the way")  \
  X(buffers_pinned, "count", "system calls whose buffer lay in a protected mapping")         \
  X(faults_retried, "count", "system calls repeated after EFAULT from a closed cell")        \
  X(faults_forwarded, "count", "faults passed to the application's own action")              \
  X(streamed_bytes, "bytes", "read() and relatives on followed files")                       \
  X(waited_ns, "ns", "time waited in data loaders, reads and faults; overlaps count once")   \
  X(loop_waits, "count", "batches that a training loop took from its data loader")           \
  X(files_followed, "count", "files handed to the optimizer")                                \
  X(events_dropped, "count", "events lost because the ring was full")                        \
  X(passed_no_optimizer, "count", "files passed through: no optimizer answered")             \
  X(passed_refused, "count", "files passed through: the optimizer refused")                  \
  X(passed_vma_limit, "count", "mappings passed through: too few VMAs left")                 \
  X(passed_unprotectable, "count", "mappings passed through: locked, populated or writable") \
  X(passed_lost_handler, "count", "mappings passed through: SIGSEGV action taken over")

// Written by the optimizer, one set per session.
#define SLUICE_SESSION_METRICS(X)                                                                  \
  X(precached_bytes, "bytes", "read ahead into the page cache for this session")                   \
  X(precached_used_bytes, "bytes", "of these, what the reader passed")                             \
  X(precached_unused_bytes, "bytes", "of these, dropped or left behind without being read")        \
  X(already_cached_bytes, "bytes", "found in the page cache when planning to read it")             \
  X(precache_lost_bytes, "bytes", "read ahead and found missing by cachestat")                     \
  X(dropped_bytes, "bytes", "dropped behind the reader to stay within the budget")                 \
  X(late_bytes, "bytes", "the reader got there before the pre-cache did")                          \
  X(stall_avoided_ns, "ns", "estimate: what the job would have waited more without Sluice")        \
  X(stall_ns, "ns", "time that the job waited for data; unknown waits are in it")                  \
  X(read_errors, "count", "reads that storage answered with an error")                             \
  X(streams_begun, "count", "sequential runs found")                                               \
  X(sample_hits, "count", "samples that were in memory when a worker began them")                  \
  X(sample_late, "count", "samples that were still being fetched then")                            \
  X(sample_misses, "count", "samples that were not, though it was known where they are")           \
  X(originals_needed, "count", "samples to which the job could be given no copies of their files") \
  X(kept_bytes, "bytes", "of samples that were in memory still, and not read from storage")        \
  X(packages_read, "count", "runs of neighbouring records that were read with one request")        \
  X(package_bytes, "bytes", "of these, and of what lay between; they count as precached_bytes")    \
  X(package_used_bytes, "bytes", "of these, what a sample was then to be read of")                 \
  X(packed_files, "count", "files that came from packs in the cache folder")                       \
  X(packed_bytes, "bytes", "of these; they count as precached_bytes as well")                      \
  X(samples_offered, "count", "samples of epochs that chose by importance what they fetch")        \
  X(samples_selected, "count", "of these, samples that were chosen")                               \
  X(h_hits, "count", "of these, samples that matter much and were in memory")                      \
  X(l_hits_exact, "count", "of these, other samples that were in memory")                          \
  X(l_hits_substituted, "count", "of these, samples stood in for by others in memory")             \
  X(importance_misses, "count", "of these, samples that were read from storage")                   \
  X(heap_swaps, "count", "times that the kept samples were sorted by new importances")             \
  X(benefit_permille, "permille",                                                                  \
    "what the job gains by a cache that others share; 1000: nothing")                              \
  X(copies_off, "count", "times that copies did a dataset more harm than good: off for a while")   \
  X(records_off, "count", "likewise, records read ahead")                                          \
  X(off_dataset, "id", "of the dataset for which something was switched off last")                 \
  X(trace_records, "count", "samples recorded in the trace of SLUICE_RECORD")                      \
  X(trace_lost, "count", "samples that trace lacks: it could not be written")                      \
  X(mount_refused, "count", "files whose mount drops its cache or hangs: tier off")                \
  X(events_seen, "count", "events taken from the rings")                                           \
  X(events_bad, "count", "events refused because they made no sense")

namespace sluice::protocol {

#define SLUICE_ENUM(name, unit, help) name,
enum class ClientMetric : uint32_t { SLUICE_CLIENT_METRICS(SLUICE_ENUM) kCount };
enum class SessionMetric : uint32_t { SLUICE_SESSION_METRICS(SLUICE_ENUM) kCount };
#undef SLUICE_ENUM

struct MetricInfo {
  const char* name;
  const char* unit;
  const char* help;
};

#define SLUICE_INFO(name, unit, help) {#name, unit, help},
inline constexpr MetricInfo kClientMetrics[] = {SLUICE_CLIENT_METRICS(SLUICE_INFO)};
inline constexpr MetricInfo kSessionMetrics[] = {SLUICE_SESSION_METRICS(SLUICE_INFO)};
#undef SLUICE_INFO

inline constexpr uint32_t kClientMetricCount = static_cast<uint32_t>(ClientMetric::kCount);
inline constexpr uint32_t kSessionMetricCount = static_cast<uint32_t>(SessionMetric::kCount);

}  // namespace sluice::protocol
