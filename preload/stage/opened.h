// Descriptors that read a staged copy, and what they stand for. One record for each number, in
// chunks that are mapped when the first of them is needed. Any thread; async-signal-safe.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "protocol/stage.h"

namespace sluice::preload {

struct StagedFd {
  std::atomic<uint64_t> serial{0};  // of the open() that made it, shared by its copies; 0: free
  int flags = 0;                    // of that open()
  uint64_t device = 0, inode = 0;   // of the copy itself
  protocol::StageStat stat{};
  uint16_t length = 0;
  char path[protocol::kStagePath] = {};  // absolute, of the original
};

inline constexpr int kStagedFdChunk = 64;
inline constexpr int kStagedFdChunks = 1024;
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
// of another one is forgotten.
StagedFd* staged_fd_now(int fd);

// Notes that `fd` reads the copy of `path`, which is on `device`. False: no memory for it.
bool staged_fd_opened(int fd, uint64_t device, int flags, const protocol::StageCopy& copy,
                      const char* path, size_t length);
void staged_fd_closed(int fd);
void staged_fds_closed(unsigned first, unsigned last);
void staged_fd_copied(int from, int to);

// Whether any descriptor of this process reads a copy.
bool any_staged_fd();

// What the original's attributes were.
void fill(const protocol::StageStat& from, struct stat* to);
bool fill(const protocol::StageStat& from, unsigned mask, struct statx* to);

}  // namespace sluice::preload
