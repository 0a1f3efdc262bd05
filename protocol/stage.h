// The index of the stage: which files have a copy in memory, under which name, and the original's
// attributes. One sealed memfd per optimizer, written only by it; the processes of jobs map it
// read-only and find a file by a keyed hash of its path, so that a hit needs no message.
//
//   Stage { StageHeader; buckets; StageFile files[] }
//
// A file's record is guarded by its own sequence (a seqlock); the orderings live in stage_io.h and
// nowhere else. Records are dense, so that only staged files take memory; the mapping is sparse.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "protocol/access_identity.h"
#include "protocol/version.h"

namespace sluice::protocol {

inline constexpr uint32_t kStageMagic = 0x47545353;        // "SSTG"
inline constexpr uint32_t kStageFiles = 1U << 20;          // records
inline constexpr uint32_t kStageGroups = 1U << 18;         // power of two
inline constexpr uint32_t kStageGroupSize = 8;             // buckets that one hash may use
inline constexpr size_t kStagePath = 1024;                 // longest path with a copy, with its NUL
inline constexpr size_t kStageFolder = 128;                // bytes, with its NUL
inline constexpr uint64_t kStageSilentNs = 1'000'000'000;  // older: the stage is unattended

inline constexpr uint32_t kStageDevices = 16;

// A path as a job wrote it, made absolute by stage_path(). SipHash-2-4 with 128 bits and the
// header's secret: no job can construct a collision.
struct StageKey {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const StageKey&) const = default;
};

enum class StageState : uint32_t {
  kFree = 0,
  kFetching = 1,  // becomes kStaged soon, or kFree: worth waiting for
  kStaged = 2,
};

// The original's attributes from stat(2) and statx(2) when it was copied.
struct StageStat {
  uint64_t device, inode, rdevice;
  uint64_t size, blocks;                              // bytes, units of 512 bytes
  int64_t accessed_s, modified_s, changed_s, born_s;  // seconds since 1970
  uint32_t accessed_ns, modified_ns, changed_ns, born_ns;
  uint32_t mode, links, uid, gid;
  uint32_t block_size, mask;  // statx's stx_mask
  uint64_t attributes, attributes_mask;
  uint64_t mount;  // the mount's number
};
static_assert(sizeof(StageStat) == 136);

// The content of a record.
struct StageCopy {
  StageKey key;
  uint64_t name;          // of the copy: 16 hexadecimal digits in the folder; never reused
  uint64_t validated_ns;  // CLOCK_MONOTONIC before the original was last validated
  StageStat stat;
  uint64_t flags;
  uint64_t copy_inode;  // of the copy, on the header's copy_device
};
inline constexpr uint64_t kStageLink = 1;  // the path's last component is a symbolic link
// Not all folders on the path of the original can be watched: changes by other processes of this
// host are not reported, so the original is compared at each use.
inline constexpr uint64_t kStageUnwatched = 2;
inline constexpr size_t kStageCopyWords = sizeof(StageCopy) / sizeof(uint64_t);
static_assert(sizeof(StageCopy) == 184);

struct alignas(64) StageFile {
  std::atomic<uint32_t> sequence;                // optimizer: odd while it writes
  std::atomic<uint32_t> state;                   // optimizer: StageState, a futex word
  std::atomic<uint64_t> words[kStageCopyWords];  // optimizer: a StageCopy
};
static_assert(sizeof(StageFile) == 192);

struct alignas(64) StageHeader {
  uint32_t magic;                                  // optimizer, before the memfd is passed
  uint32_t version;                                // optimizer, likewise
  uint64_t size;                                   // optimizer, likewise: bytes in total
  uint64_t secret[2];                              // optimizer, likewise
  AccessIdentity identity;                         // optimizer, likewise: the optimizer's own
  uint64_t copy_device;                            // optimizer, likewise: the folder's st_dev
  uint64_t process_inode;                          // optimizer, likewise: of its pidfd; 0: none
  int32_t process;                                 // optimizer, likewise: its pid
  int32_t watch_fd;                                // optimizer, likewise: its inotify; -1: none
  char folder[kStageFolder];                       // optimizer, likewise: absolute
  alignas(64) std::atomic<uint64_t> heartbeat_ns;  // optimizer: CLOCK_MONOTONIC
  std::atomic<uint64_t> files;                     // optimizer: records in use
  std::atomic<uint32_t> closed;                    // optimizer: 1 once the stage has ended
  // optimizer: odd from before it reads inotify's queue until the records of changed files are
  // removed. If the queue is empty and the number is even and the same before and after, every
  // change that completed before has been handled.
  std::atomic<uint32_t> draining;
  std::atomic<uint64_t> devices[kStageDevices];  // optimizer: of originals; 0: none
};

// A bucket is 0, or the key's upper 32 bits and the record's index + 1.
struct Stage {
  StageHeader header;
  alignas(64) std::atomic<uint64_t> buckets[kStageGroups][kStageGroupSize];  // optimizer
  StageFile files[kStageFiles];
};
static_assert(offsetof(Stage, buckets) % 64 == 0 && offsetof(Stage, files) % 64 == 0);

// Any thread, async-signal-safe.
StageKey stage_key(const uint64_t secret[2], const char* path, size_t length);

// Writes the copy's absolute path, NUL-terminated. REQUIRES: `out` has room for kStageName bytes.
inline constexpr size_t kStageName = kStageFolder + 18;
void stage_name(char* out, const char* folder, uint64_t name);

// Writes `path` as an absolute one: `folder` (absolute, used if `path` is relative) and `path`
// joined, without empty and `.` components, and otherwise unchanged: what `..` means depends on
// links. Returns its length, or 0 if it does not fit into kStagePath or names nothing. Any thread,
// async-signal-safe.
size_t stage_path(char* out, const char* folder, size_t folder_length, const char* path,
                  size_t length);

}  // namespace sluice::protocol
