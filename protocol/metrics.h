// The one table of metrics. The counters in shared memory, `sluice status`, its --json, the
// end-of-run line and the report are made from it, so that a metric is added in one place.
//
// Each line: X(name, unit, help). Names are the JSON keys. Counters only grow within a session; a
// value in permille is the latest one, and stall_avoided_ns, an estimate, may fall.
#pragma once

#include <cstdint>

// Written by the library, one set per process (slot); a session's value is the sum.
#define SLUICE_CLIENT_METRICS(X)                                                           \
  X(checkpoints_hit, "count", "first touches detected by a memory checkpoint")             \
  X(cells_rearmed, "count", "checkpoints re-armed behind the reader")                      \
  X(cells_sticky, "count", "cells left open because of repeated touches")                  \
  X(mappings_armed, "count", "mappings that got checkpoints")                              \
  X(mappings_observed, "count", "mappings followed by page-table observation")             \
  X(mappings_random, "count", "mappings left unprotected: access is random")               \
  X(mappings_opened, "count", "mappings left unprotected: protection interfered")          \
  X(buffers_pinned, "count", "system calls whose buffer lay in a protected mapping")       \
  X(faults_retried, "count", "system calls repeated after EFAULT from a closed cell")      \
  X(faults_forwarded, "count", "faults forwarded to the application's handler")            \
  X(streamed_bytes, "bytes", "bytes read by read() and relatives on followed files")       \
  X(waited_ns, "ns", "time waited in data loaders, reads and faults; overlaps count once") \
  X(loop_waits, "count", "batches that a training loop took from its data loader")         \
  X(files_followed, "count", "files registered with the optimizer")                        \
  X(events_dropped, "count", "events lost because the ring was full")                      \
  X(opened_ahead, "count", "files that the optimizer had opened before the job did")       \
  X(passed_no_optimizer, "count", "files not handled: no optimizer answered")              \
  X(passed_refused, "count", "files not handled: the optimizer refused")                   \
  X(passed_vma_limit, "count", "mappings not handled: too few VMAs left")                  \
  X(passed_unprotectable, "count", "mappings not handled: locked, populated or writable")  \
  X(passed_lost_handler, "count", "mappings not handled: SIGSEGV handler replaced")

// Written by the optimizer, one set per session.
#define SLUICE_SESSION_METRICS(X)                                                             \
  X(precached_bytes, "bytes", "read ahead into the page cache for this session")              \
  X(precached_used_bytes, "bytes", "of these, passed by the reader")                          \
  X(precached_unused_bytes, "bytes", "of these, dropped or never read")                       \
  X(already_cached_bytes, "bytes", "already in the page cache when planned")                  \
  X(precache_lost_bytes, "bytes", "prefetched, but evicted before use (cachestat)")           \
  X(dropped_bytes, "bytes", "dropped behind the reader to stay within the budget")            \
  X(late_bytes, "bytes", "not yet prefetched when the reader arrived")                        \
  X(stall_avoided_ns, "ns", "estimate: additional waiting without Sluice")                    \
  X(stall_ns, "ns", "time that the job waited for data, unexplained waits included")          \
  X(folders_listed, "count", "folders listed ahead of a job that walks through a tree")       \
  X(start_files, "count", "files fetched ahead that the command opened as it started last")   \
  X(read_errors, "count", "reads that failed")                                                \
  X(streams_begun, "count", "sequential runs found")                                          \
  X(sample_hits, "count", "samples that were in memory when a worker began them")             \
  X(sample_late, "count", "samples still being fetched when begun")                           \
  X(sample_misses, "count", "samples of known location, not in memory when begun")            \
  X(originals_needed, "count", "samples whose files could not be opened as copies")           \
  X(kept_bytes, "bytes", "of samples still in memory, not re-read from storage")              \
  X(packages_read, "count", "runs of neighbouring records that were read with one request")   \
  X(package_bytes, "bytes", "of these and the gaps between; included in precached_bytes")     \
  X(package_used_bytes, "bytes", "of these, used by a sample")                                \
  X(packed_files, "count", "files read from packs in the cache folder")                       \
  X(packed_bytes, "bytes", "of these; included in precached_bytes")                           \
  X(samples_offered, "count", "samples of epochs with selection by importance")               \
  X(samples_selected, "count", "of these, selected")                                          \
  X(h_hits, "count", "of these, H-samples in memory")                                         \
  X(l_hits_exact, "count", "of these, L-samples in memory")                                   \
  X(l_hits_substituted, "count", "of these, substituted by samples in memory")                \
  X(importance_misses, "count", "of these, read from storage")                                \
  X(heap_swaps, "count", "times that retained samples were re-sorted by new importance")      \
  X(benefit_permille, "permille", "benefit of sharing the cache with other jobs; 1000: none") \
  X(copies_off, "count", "times that copies were disabled because they slowed a dataset")     \
  X(records_off, "count", "likewise, prefetching of records")                                 \
  X(off_dataset, "id", "dataset for which a mechanism was disabled last")                     \
  X(trace_records, "count", "samples recorded in the trace of SLUICE_RECORD")                 \
  X(trace_lost, "count", "samples missing from the trace (write errors)")                     \
  X(mount_refused, "count", "files whose mount drops its cache or hangs: tier off")           \
  X(events_seen, "count", "events taken from the rings")                                      \
  X(events_bad, "count", "invalid events refused")

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
