// Descriptors that read a staged copy, and the originals that they are substitutes for. One record
// for each number, in chunks that are mapped at first use. Any thread; async-signal-safe.
//
// A descriptor is switched to the original (original.h) while other threads may use it. A call that
// moves or reads its offset is a *use*: it begins only while no switch is in progress, and a switch
// begins only once no use is in progress. So the original continues at the copy's last offset.
// Making a record and freeing one are uses, too: a record never changes its file during a switch.
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "preload/base/fd_table.h"
#include "protocol/stage.h"

namespace sluice::preload {

struct StagedFd {
  std::atomic<uint64_t> serial{0};  // of the open() that made it, shared by its dups; 0: free
  std::atomic<uint32_t> uses{0};    // in progress; kChangingOver is a flag bit above the count
  uint32_t owner = 0;               // kernel id of the thread in whose window it was opened
  int flags = 0;                    // of that open()
  FILE* stream = nullptr;           // reads it by calls inside libc; holding its lock is a use
  FILE* locked = nullptr;           // the stream whose lock the switch in progress holds
  uint64_t device = 0, inode = 0;   // of the copy itself
  protocol::StageStat stat{};
  uint16_t length = 0;
  char path[protocol::kStagePath] = {};  // absolute, of the original
};

inline constexpr uint32_t kChangingOver = 1U << 31;
extern FdTable<StagedFd> g_staged_fds;

// nullptr for a descriptor that reads no copy: the fast path of every hook. A record may be stale,
// if its descriptor was closed by a call that no hook saw: see staged_fd_now().
inline StagedFd* staged_fd(int fd) {
  StagedFd* entry = g_staged_fds.find(fd);
  return entry != nullptr && entry->serial.load(std::memory_order_acquire) != 0 ? entry : nullptr;
}

// The same, but checks by one fstat() that the descriptor reads the copy; drops a stale record.
StagedFd* staged_fd_now(int fd);

// A use of `fd` while this object exists; without effect for a descriptor that reads no copy. Waits
// while a switch is in progress, which is a few system calls.
class StagedUse {
 public:
  explicit StagedUse(int fd) {
    if (__builtin_expect(staged_fd(fd) != nullptr, 0)) begin(fd);
  }
  ~StagedUse() {
    if (__builtin_expect(entry_ != nullptr, 0)) end();
  }
  // Also of a record that is free, to fill it in.
  explicit StagedUse(StagedFd& entry);
  StagedUse(const StagedUse&) = delete;
  StagedUse& operator=(const StagedUse&) = delete;

 private:
  void begin(int fd);
  bool try_begin(StagedFd* entry);
  void end();

  StagedFd* entry_ = nullptr;
  StagedFd* outer_ = nullptr;  // the thread's use that a signal handler interrupted, if any
};

// Records that `fd` reads the copy of `path`, which is on `device`. False: out of memory.
bool staged_fd_opened(int fd, uint64_t device, int flags, const protocol::StageCopy& copy,
                      const char* path, size_t length);
// stdio reads `fd` through `stream` from now on.
void staged_fd_has_stream(int fd, FILE* stream);
void staged_fd_closed(int fd);
void staged_fds_closed(unsigned first, unsigned last);
void staged_fd_copied(int from, int to);

// Descriptors of this process that read copies, and the bytes of these copies, which eviction
// cannot free. Both approximate.
uint64_t staged_fds_open();
uint64_t staged_bytes_open();
inline bool any_staged_fd() { return staged_fds_open() != 0; }

// In a fork's child: resets uses by threads that do not exist there.
void staged_fds_after_fork();

// Calls use(number, entry) for each record, also for those that are free.
template <typename Use>
void for_each_record(Use use) {
  using Table = FdTable<StagedFd>;
  for (int first = 0; first < Table::kAll; first += Table::kChunk) {
    StagedFd* entries = g_staged_fds.chunk(first);
    for (int i = 0; entries != nullptr && i < Table::kChunk; ++i) use(first + i, entries[i]);
  }
}
// Calls use(number, entry) for each descriptor that reads a copy.
template <typename Use>
void for_each_staged(Use use) {
  for_each_record([&](int fd, StagedFd& entry) {
    if (entry.serial.load(std::memory_order_acquire) != 0) use(fd, entry);
  });
}

// Whether the descriptor number still reads the record's copy.
bool reads_copy(int fd, const StagedFd& entry);
// Frees the record. REQUIRES: the caller has a use of it, or is switching it.
void release_staged(StagedFd& entry);

// Fills in the original's attributes as stored.
void fill(const protocol::StageStat& from, struct stat* to);
bool fill(const protocol::StageStat& from, unsigned mask, struct statx* to);

}  // namespace sluice::preload
