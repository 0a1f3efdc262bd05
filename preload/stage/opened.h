// Descriptors that read a staged copy, and what they stand for. One record for each number, in
// chunks that are mapped when the first of them is needed. Any thread; async-signal-safe.
//
// A descriptor is changed over to the original (original.h) while others may use it. What moves or
// asks for its offset is a *use*: it begins only while no change is under way, and a change begins
// only once no use is under way. So the offset that the original continues at is the copy's last.
#pragma once

#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "protocol/stage.h"

namespace sluice::preload {

struct StagedFd {
  std::atomic<uint64_t> serial{0};  // of the open() that made it, shared by its dups; 0: free
  std::atomic<uint32_t> uses{0};    // under way; kChangingOver above them
  uint32_t owner = 0;               // the thread in whose window it was opened, by the kernel's id
  int flags = 0;                    // of that open()
  FILE* stream = nullptr;           // that reads it by calls inside libc; its lock is a use
  uint64_t device = 0, inode = 0;   // of the copy itself
  protocol::StageStat stat{};
  uint16_t length = 0;
  char path[protocol::kStagePath] = {};  // absolute, of the original
};

inline constexpr int kStagedFdChunk = 64;
inline constexpr int kStagedFdChunks = 1024;
inline constexpr uint32_t kChangingOver = 1U << 31;
extern std::atomic<StagedFd*> g_staged_fds[kStagedFdChunks];

// nullptr for a descriptor that reads no copy: the fast path of every hook. A record may be left
// from a descriptor that was closed where no hook is: see staged_fd_now().
inline StagedFd* staged_fd(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kStagedFdChunk * kStagedFdChunks) return nullptr;
  StagedFd* chunk = g_staged_fds[number / kStagedFdChunk].load(std::memory_order_acquire);
  if (__builtin_expect(chunk == nullptr, 1)) return nullptr;
  StagedFd* entry = &chunk[number % kStagedFdChunk];
  return entry->serial.load(std::memory_order_acquire) != 0 ? entry : nullptr;
}

// The same, of a descriptor that surely reads a copy: one look at what is behind it. What is left
// of another one is dropped.
StagedFd* staged_fd_now(int fd);

// A use of `fd` for as long as it lives; nothing for a descriptor that reads no copy. Waits while
// a change is under way, which is a few system calls.
class StagedUse {
 public:
  explicit StagedUse(int fd) {
    if (__builtin_expect(staged_fd(fd) != nullptr, 0)) begin(fd);
  }
  ~StagedUse() {
    if (__builtin_expect(entry_ != nullptr, 0)) end();
  }
  StagedUse(const StagedUse&) = delete;
  StagedUse& operator=(const StagedUse&) = delete;

 private:
  void begin(int fd);
  void end();

  StagedFd* entry_ = nullptr;
  StagedFd* outer_ = nullptr;  // what the thread was using when a handler interrupted it
};

// Notes that `fd` reads the copy of `path`, which is on `device`. False: no memory for it.
bool staged_fd_opened(int fd, uint64_t device, int flags, const protocol::StageCopy& copy,
                      const char* path, size_t length);
// stdio reads `fd` through `stream` from now on.
void staged_fd_has_stream(int fd, FILE* stream);
void staged_fd_closed(int fd);
void staged_fds_closed(unsigned first, unsigned last);
void staged_fd_copied(int from, int to);

// Descriptors of this process that read copies, and the bytes of these copies: what no eviction
// can free. Both about right.
uint64_t staged_fds_open();
uint64_t staged_bytes_open();
inline bool any_staged_fd() { return staged_fds_open() != 0; }

// A fork's child: uses of other threads are theirs no more.
void staged_fds_after_fork();

// Calls use(number, entry) for each descriptor that reads a copy.
template <typename Use>
void for_each_staged(Use use) {
  constexpr int kAll = kStagedFdChunk * kStagedFdChunks;
  for (int first = 0; first < kAll; first += kStagedFdChunk) {
    if (g_staged_fds[first / kStagedFdChunk].load(std::memory_order_acquire) == nullptr) continue;
    for (int fd = first; fd < first + kStagedFdChunk; ++fd) {
      if (StagedFd* entry = staged_fd(fd); entry != nullptr) use(fd, *entry);
    }
  }
}

// Whether the number still is the descriptor that the record is of.
bool reads_copy(int fd, const StagedFd& entry);
// Frees the record. REQUIRES: a use of it, or that it is being changed over.
void release_staged(StagedFd& entry);

// What the original's attributes were.
void fill(const protocol::StageStat& from, struct stat* to);
bool fill(const protocol::StageStat& from, unsigned mask, struct statx* to);

}  // namespace sluice::preload
