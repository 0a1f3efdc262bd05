// A record for each descriptor number, in chunks that are mapped at first use: zeros, which must be
// free records. Any thread; async-signal-safe.
#pragma once

#include <sys/mman.h>

#include <atomic>

#include "preload/base/sys.h"

namespace sluice::preload {

template <typename Record>
class FdTable {
 public:
  static constexpr int kChunk = 64, kChunks = 1024;
  static constexpr int kAll = kChunk * kChunks;

  // The records of `fd` and its neighbours, kChunk of them from a multiple of kChunk on; nullptr if
  // none was used yet. REQUIRES: 0 <= fd < kAll.
  Record* chunk(int fd) const { return chunks_[fd / kChunk].load(std::memory_order_acquire); }

  // nullptr if no record near `fd` was used yet: the fast path of every hook.
  Record* find(int fd) const {
    if (static_cast<unsigned>(fd) >= kAll) return nullptr;
    Record* found = chunk(fd);
    if (__builtin_expect(found == nullptr, 1)) return nullptr;
    return &found[fd % kChunk];
  }

  // nullptr: `fd` is too large, or there is no memory.
  Record* make(int fd) {
    if (static_cast<unsigned>(fd) >= kAll) return nullptr;
    if (Record* known = find(fd); known != nullptr) return known;
    constexpr size_t kBytes = sizeof(Record) * kChunk;
    const long memory = sys::call(SYS_mmap, 0, kBytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sys::failed(memory)) return nullptr;
    Record* others = nullptr;
    if (!chunks_[fd / kChunk].compare_exchange_strong(others, reinterpret_cast<Record*>(memory),
                                                      std::memory_order_acq_rel)) {
      sys::call(SYS_munmap, memory, kBytes);
    }
    return find(fd);
  }

 private:
  std::atomic<Record*> chunks_[kChunks] = {};
};

}  // namespace sluice::preload
