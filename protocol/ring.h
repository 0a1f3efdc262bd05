// The memory that a job and the optimizer share: one sealed memfd per session, created by the
// optimizer, mapped by the job's processes and inherited by their fork children.
//
//   Shared { Header; Slot slots[kSlots]; History; }
//
// The comment of every field names its one writer. "client" is the process that claimed the slot,
// any of its threads, signal handlers included; "optimizer" is the sidecar. Fields marked "session"
// are only added to, by any client of the session. The optimizer treats all that a client writes as
// hostile until checked; lengths and indices are masked or bounded at the place of use.
// Memory ordering lives in ring_io.h and history_io.h and nowhere else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "protocol/history.h"
#include "protocol/metrics.h"
#include "protocol/version.h"

namespace sluice::protocol {

inline constexpr uint32_t kSharedMagic = 0x43494c53;  // "SLIC"
inline constexpr uint32_t kSlots = 128;               // processes of one session
inline constexpr uint32_t kRingEntries = 1024;        // events in flight per process, power of two
inline constexpr size_t kCacheLine = 64;
// Places for files that are open ahead of the session. A file's is in the bucket of its hash, which
// is mixed here: FNV's high bits of names that differ in their last characters are the same.
inline constexpr uint32_t kOpenedAhead = 1024, kOpenedBucket = 16;
constexpr uint32_t opened_bucket(uint64_t path_hash) {
  constexpr uint32_t kBuckets = kOpenedAhead / kOpenedBucket;
  return static_cast<uint32_t>((path_hash * 0x9E3779B97F4A7C15ULL) >> 32) % kBuckets *
         kOpenedBucket;
}

enum class EventKind : uint16_t {
  kNone = 0,
  // A checkpoint tripped: offset is the file offset of the first byte touched, length the bytes
  // from there to the end of the cell, now open. `address` is the pc if call sites are requested.
  kTrip = 1,
  // read() and relatives: [offset, offset + length) of the file was read, in this order.
  kRead = 2,
  // A mapping of the file exists in process `pid`: `address` its first byte, offset where in the
  // file it begins, length in bytes. flags: kFlagObserve if the optimizer must poll it,
  // kFlagByPage. Sent again, with the same address, when the advice changes.
  kMapped = 3,
  // That mapping (by address) was removed.
  kUnmapped = 4,
  // The library zapped its page-table entries for this range: the page cache may be dropped.
  kZapped = 5,
  // Access to the file through this mapping is random: no more trips follow.
  kRandom = 6,
  // A thread is about to read a sample, and has read it: `file` is the dataset's id, `address` the
  // sample's key (sample_key). At the end: offset is the number of staged copies that the thread
  // was given since the end of its previous sample, length the number it exchanged for originals.
  kSampleBegin = 8,
  kSampleEnd = 9,
  // Between the two: [offset, offset + length) of `file` belongs to the sample with the key
  // `address`.
  kSamplePart = 10,
};

// What the consumer does: it works, sleeps on the doorbell, or sleeps for so short a time that
// events without urgency need not wake it.
enum class Waiting : uint32_t { kNo = 0, kSleeps = 1, kDozes = 2 };

// A sample of one of the session's datasets in one word.
inline constexpr uint32_t kSampleIndexBits = 40;
inline constexpr uint64_t kMaxSamples = 1ULL << 32;
inline constexpr uint64_t sample_key(uint32_t dataset, uint64_t index) {
  return static_cast<uint64_t>(dataset) << kSampleIndexBits | index;
}
inline constexpr uint32_t dataset_of(uint64_t key) {
  return static_cast<uint32_t>(key >> kSampleIndexBits);
}
inline constexpr uint64_t index_of(uint64_t key) { return key & ((1ULL << kSampleIndexBits) - 1); }

inline constexpr uint16_t kFlagObserve = 1;  // kMapped: poll the page table
inline constexpr uint16_t kFlagPage = 2;     // kTrip: page mode, one page was opened
inline constexpr uint16_t kFlagSample = 8;   // kTrip, kRead: between a sample's begin and its end
inline constexpr uint16_t kFlagAgain = 4;    // kTrip: re-armed checkpoint; pages were mapped
inline constexpr uint16_t kFlagByPage = 16;  // kMapped: MADV_RANDOM: the kernel reads page by page
inline constexpr uint16_t kFlagBegun = 32;   // kRead: a call that will read the range has begun

// One event. 64 bytes, so that two producers never share a cache line.
struct alignas(kCacheLine) Event {
  std::atomic<uint64_t> sequence;  // client: position + 1 once the entry is complete
  uint64_t offset;                 // client: bytes from the start of the file
  uint64_t length;                 // client: bytes
  uint64_t time_ns;                // client: CLOCK_MONOTONIC
  uint64_t address;                // client: see EventKind
  uint32_t file;                   // client: the id that the optimizer assigned to the file
  uint32_t tid;                    // client: kernel thread id in its own pid namespace
  uint16_t kind;                   // client: EventKind
  uint16_t flags;                  // client
  uint32_t reserved;
};
static_assert(sizeof(Event) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// One process of the session. Claimed by compare-and-swap of pid from 0, in the process itself
// and without a message, so that a fork child can do it inside a signal handler.
struct alignas(kCacheLine) Slot {
  std::atomic<uint32_t> pid;  // client: 0 -> pid; optimizer: pid -> 0 after that process ended
  uint32_t reserved0;
  std::atomic<uint64_t> generation;                // optimizer: counts how often the slot was freed
  alignas(kCacheLine) std::atomic<uint64_t> tail;  // client: next position to claim
  alignas(kCacheLine) std::atomic<uint64_t> head;  // optimizer: next position to take
  alignas(kCacheLine) std::atomic<uint64_t> metrics[kClientMetricCount];  // client
  alignas(kCacheLine) Event ring[kRingEntries];
};

struct alignas(kCacheLine) Header {
  uint32_t magic;         // optimizer, before the descriptor is passed
  uint32_t version;       // optimizer, likewise
  uint32_t slot_count;    // optimizer, likewise
  uint32_t ring_entries;  // optimizer, likewise
  uint64_t size;          // optimizer, likewise: bytes of the whole mapping
  uint64_t session;       // optimizer, likewise: session id
  uint64_t token;         // optimizer, likewise: repeated in every later message
  alignas(kCacheLine) std::atomic<uint32_t> doorbell;  // session: futex word, +1 per ring
  alignas(kCacheLine) std::atomic<uint32_t> waiting;   // optimizer: a Waiting
  std::atomic<uint32_t> closed;                        // optimizer: 1 once the session is over
  // optimizer: 1 while it has no use for kSampleBegin and kSampleEnd
  std::atomic<uint32_t> samples_idle;
  // optimizer: 1 while the library must report which pages of mapped files samples consist of, and
  // remove them from the page table when the sample ends
  std::atomic<uint32_t> pages_wanted;
  // optimizer: how many files it has open ahead of the session, with those that it is opening or
  // closing
  std::atomic<uint32_t> opened_count;
  // session: path_hash() of the file that the start of a program opened last
  std::atomic<uint64_t> start_opened;
  // optimizer: path_hash() of files that it has opened ahead; 0: none. See kTakeFile.
  alignas(kCacheLine) std::atomic<uint64_t> opened_ahead[kOpenedAhead];
  alignas(kCacheLine) std::atomic<uint64_t> metrics[kSessionMetricCount];  // optimizer
  // optimizer: sum of the counters of freed slots
  alignas(kCacheLine) std::atomic<uint64_t> freed[kClientMetricCount];
};

struct Shared {
  Header header;
  Slot slots[kSlots];
  History history;
};
static_assert(offsetof(Shared, slots) % kCacheLine == 0);
static_assert(sizeof(Slot) % kCacheLine == 0);
static_assert(offsetof(Shared, history) % kCacheLine == 0);

}  // namespace sluice::protocol
