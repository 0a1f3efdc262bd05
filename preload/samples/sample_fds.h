// Descriptors that were opened while a thread read a sample, and uses which show that such a file
// is not one sample: it is read in other samples through the same descriptor, locked, mapped, or
// read in part. Each use of a file is reported to the optimizer once. Any thread;
// async-signal-safe as far as the hooked calls are. errno is preserved.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/base/fd_table.h"
#include "protocol/control.h"
#include "protocol/stage.h"

namespace sluice::preload {

struct SampleFd {
  std::atomic<uint64_t> key{0};   // of the sample in which it was opened; 0: free record
  std::atomic<uint64_t> read{0};  // bytes, through this descriptor
  uint64_t size = 0;              // bytes, of the file when it was opened
  uint64_t file = 0;              // a hash of the path
  uint16_t length = 0;
  char path[protocol::kStagePath] = {};  // absolute
};

extern FdTable<SampleFd> g_sample_fds;

// nullptr for a descriptor that no sample opened: the fast path of every hook.
inline SampleFd* sample_fd(int fd) {
  SampleFd* entry = g_sample_fds.find(fd);
  return entry != nullptr && entry->key.load(std::memory_order_acquire) != 0 ? entry : nullptr;
}

// `fd` was opened for reading in the sample `key`; `path` is absolute and shorter than kStagePath.
void sample_fd_opened(int fd, uint64_t key, uint64_t size, const char* path, size_t length);

void found_use(SampleFd& entry, protocol::FileUse use);
void sample_fd_was_read(SampleFd& entry, uint64_t bytes);
void sample_fd_was_closed(int fd, SampleFd& entry);

// After `bytes` were read.
inline void sample_fd_read(int fd, ssize_t bytes) {
  SampleFd* entry = sample_fd(fd);
  if (entry != nullptr && bytes > 0) sample_fd_was_read(*entry, static_cast<uint64_t>(bytes));
}
inline void sample_fd_locked(int fd) {
  if (SampleFd* entry = sample_fd(fd)) found_use(*entry, protocol::FileUse::kLocked);
}
inline void sample_fd_mapped(int fd) {
  if (SampleFd* entry = sample_fd(fd)) found_use(*entry, protocol::FileUse::kMapped);
}
// Before it is closed.
inline void sample_fd_closes(int fd) {
  if (SampleFd* entry = sample_fd(fd)) sample_fd_was_closed(fd, *entry);
}

void sample_fds_after_fork();

}  // namespace sluice::preload
