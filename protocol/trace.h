// The trace of a job: which samples were delivered to it, in which order. Written by a recorder,
// read by `sluice simulate`; docs/protocol.md has the same in prose.
//
//   file = TraceHeader TraceRecord*
//
// All integers are unsigned and little-endian. The number of records follows from the file's
// length; a truncated last record does not count, so a recorder that was killed leaves a valid
// trace. A reader must check everything in the file before using it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::protocol {

inline constexpr uint32_t kTraceMagic = 0x52544c53;  // the bytes "SLTR"
// Increment when a field or its meaning changes. Not part of kVersion: files outlive programs.
inline constexpr uint32_t kTraceVersion = 1;
inline constexpr uint32_t kTraceMaxJobs = 1024;
inline constexpr uint64_t kTraceMaxBytes = uint64_t{1} << 36;  // of one sample, 64 GiB

struct TraceHeader {
  uint32_t magic;        // kTraceMagic
  uint32_t version;      // kTraceVersion
  uint32_t record_size;  // sizeof(TraceRecord)
  uint32_t reserved;     // 0
};
static_assert(sizeof(TraceHeader) == 16 && std::is_trivially_copyable_v<TraceHeader>);

// One sample was delivered to one job. Records are in the order in which that happened.
struct TraceRecord {
  uint64_t bytes;     // size of the sample, at most kTraceMaxBytes
  uint32_t epoch;     // of that job; never less than in the job's previous record
  uint32_t job;       // below kTraceMaxJobs
  uint32_t sample;    // its index in the dataset, any but 0xffffffff
  uint32_t reserved;  // 0
};
static_assert(sizeof(TraceRecord) == 24 && std::is_trivially_copyable_v<TraceRecord>);
static_assert(offsetof(TraceRecord, epoch) == 8 && offsetof(TraceRecord, job) == 12);
static_assert(offsetof(TraceRecord, sample) == 16);

}  // namespace sluice::protocol
