// Descriptors that read a staged copy: what they stand for, and how to put the original behind
// them. One record for each number, in chunks that are mapped when the first of them is needed.
// Any thread; async-signal-safe but for swapping, which opens the original.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>

#include "protocol/stage.h"

namespace sluice::preload {

struct StagedFd {
  std::atomic<uint64_t> serial{0};  // of the open() that made it, shared by its copies; 0: free
  int flags = 0;                    // of that open()
  protocol::StageStat stat{};
  uint16_t length = 0;
  char path[protocol::kStagePath] = {};  // absolute, of the original
};

inline constexpr int kStagedFdChunk = 64;
inline constexpr int kStagedFdChunks = 1024;
extern std::atomic<StagedFd*> g_staged_fds[kStagedFdChunks];

// nullptr for a descriptor that reads no copy: the fast path of every hook.
inline StagedFd* staged_fd(int fd) {
  const auto number = static_cast<unsigned>(fd);
  if (number >= kStagedFdChunk * kStagedFdChunks) return nullptr;
  StagedFd* chunk = g_staged_fds[number / kStagedFdChunk].load(std::memory_order_acquire);
  if (__builtin_expect(chunk == nullptr, 1)) return nullptr;
  StagedFd* entry = &chunk[number % kStagedFdChunk];
  return entry->serial.load(std::memory_order_acquire) != 0 ? entry : nullptr;
}

// The copies' device; set once, before the first of them is opened.
extern std::atomic<uint64_t> g_stage_device;
// Whether the attributes that the kernel gives of `entry`'s descriptor are those of a copy of it:
// the number may have been closed, and used again, where no hook is.
bool is_copy(const StagedFd& entry, const struct stat& real);

// staged_fd(), looked at closely: one fstat.
StagedFd* surely_staged_fd(int fd);

// Notes that `fd` reads the copy of `path`. False: no memory for it.
bool staged_fd_opened(int fd, int flags, const protocol::StageCopy& copy, const char* path,
                      size_t length);
void staged_fd_closed(int fd);
void staged_fds_closed(unsigned first, unsigned last);
void staged_fd_copied(int from, int to);

// Puts the original behind `fd` and all its copies in this process, at the same offset. Without
// effect if it reads no copy, or if the original is not that file any more. errno is kept.
void use_original(int fd);
// The same for the descriptor that a path such as /proc/self/fd/5 names, if it does.
void use_original_of(const char* path);
// Whether any descriptor of this process reads a copy.
bool any_staged_fd();
// Those that a program which is about to be executed inherits.
void use_originals_for_exec();

// What the original's attributes were.
void fill(const protocol::StageStat& from, struct stat* to);
bool fill(const protocol::StageStat& from, unsigned mask, struct statx* to);

}  // namespace sluice::preload
