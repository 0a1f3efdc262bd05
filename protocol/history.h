// The course of a session, in its shared memory: points at intervals that grow with the session,
// and one entry per epoch. The library writes them into SLUICE_REPORT, `sluice report` draws them.
//
// One table of fields for both sides, the documents and the report. X(name, unit, help).
// Memory ordering lives in history_io.h and nowhere else.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "protocol/metrics.h"

// One point. Figures that count from the session's start say "so far".
#define SLUICE_HISTORY_FIELDS(X)                                                           \
  X(time_ns, "ns", "time since the session began")                                         \
  X(read_bytes, "bytes", "bytes of followed files passed by readers so far")               \
  X(ahead_bytes, "bytes", "prefetched and not yet passed")                                 \
  X(precached_bytes, "bytes", "read ahead from storage so far")                            \
  X(late_bytes, "bytes", "not yet prefetched when passed, so far")                         \
  X(stall_ns, "ns", "time that the job has waited for data so far")                        \
  X(outstanding_bytes, "bytes", "budget in use: prefetched and not passed, or in flight")  \
  X(budget_bytes, "bytes", "the most that may be in use")                                  \
  X(in_flight, "count", "reads in flight")                                                 \
  X(depth, "count", "maximum reads in flight; 0: nothing is followed")                     \
  X(bandwidth, "bytes/s", "highest observed rate of the storage; 0: not known")            \
  X(sample_hits, "count", "samples in memory when begun, so far")                          \
  X(sample_late, "count", "samples still being fetched then, so far")                      \
  X(sample_misses, "count", "samples of known location, not in memory when begun, so far") \
  X(epoch, "number", "the epoch that is running")

// One epoch. Without samples it is a pass: a reader has come back near the start of a file of which
// at least half was read since.
#define SLUICE_EPOCH_FIELDS(X)                                                     \
  X(epoch, "number", "as the job counts them, or the number of the pass")          \
  X(begin_ns, "ns", "time of its first reading, since the session began")          \
  X(end_ns, "ns", "time of its last reading")                                      \
  X(sample_hits, "count", "samples in memory when a worker began them")            \
  X(sample_late, "count", "samples still being fetched then")                      \
  X(sample_misses, "count", "samples of known location, not in memory when begun") \
  X(sample_unknown, "count", "samples of unknown location")                        \
  X(read_bytes, "bytes", "what readers passed")                                    \
  X(memory_bytes, "bytes", "of these, prefetched or already cached")               \
  X(late_bytes, "bytes", "of these, expected and not in memory yet")

namespace sluice::protocol {

#define SLUICE_ENUM(name, unit, help) name,
enum class HistoryField : uint32_t { SLUICE_HISTORY_FIELDS(SLUICE_ENUM) kCount };
enum class EpochField : uint32_t { SLUICE_EPOCH_FIELDS(SLUICE_ENUM) kCount };
#undef SLUICE_ENUM

#define SLUICE_INFO(name, unit, help) {#name, unit, help},
inline constexpr MetricInfo kHistoryFields[] = {SLUICE_HISTORY_FIELDS(SLUICE_INFO)};
inline constexpr MetricInfo kEpochFields[] = {SLUICE_EPOCH_FIELDS(SLUICE_INFO)};
#undef SLUICE_INFO

inline constexpr uint32_t kHistoryFieldCount = static_cast<uint32_t>(HistoryField::kCount);
inline constexpr uint32_t kEpochFieldCount = static_cast<uint32_t>(EpochField::kCount);
inline constexpr uint32_t kHistoryPoints = 512;  // when full, every second one is removed; even
inline constexpr uint32_t kHistoryEpochs = 64;   // later epochs are added to the last entry

// What was trained in place of what: counts of substitutions by the parts of the dataset in which
// the two samples are, and some of the pairs, drawn evenly from all.
inline constexpr uint32_t kPairParts = 5;
inline constexpr uint32_t kPairCounts = kPairParts * kPairParts;
inline constexpr uint32_t kMostPairs = 512;

// A single point or epoch, indexed by its enumeration.
using HistoryPoint = std::array<uint64_t, kHistoryFieldCount>;
using EpochEntry = std::array<uint64_t, kEpochFieldCount>;

// A page that is never written costs no memory: a short session has few.
struct alignas(64) History {
  std::atomic<uint64_t> sequence;     // optimizer: odd while it changes what follows
  std::atomic<uint64_t> points;       // optimizer: valid ones, in order of time
  std::atomic<uint64_t> epochs;       // optimizer: valid ones, in order of time
  std::atomic<uint64_t> epochs_seen;  // optimizer: includes those that were added to the last
  std::atomic<uint64_t> interval_ns;  // optimizer: least time between two points
  std::atomic<uint64_t> pairs_seen;   // optimizer: substitutions
  std::atomic<uint64_t> pairs;        // optimizer: valid ones
  uint64_t reserved[1];
  std::atomic<uint64_t> epoch[kHistoryEpochs][kEpochFieldCount];    // optimizer
  std::atomic<uint64_t> point[kHistoryPoints][kHistoryFieldCount];  // optimizer
  // optimizer: of the requested sample's part, kPairParts of the trained one's
  std::atomic<uint64_t> pair_count[kPairCounts];
  uint64_t padding[7];
  std::atomic<uint64_t> pair[kMostPairs];  // optimizer: requested << 32 | trained
};
static_assert(kHistoryPoints % 2 == 0);
static_assert(sizeof(History) ==
              64 + 8 * (kHistoryEpochs * kEpochFieldCount + kHistoryPoints * kHistoryFieldCount +
                        kPairCounts + 7 + kMostPairs));

}  // namespace sluice::protocol
