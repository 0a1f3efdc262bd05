#include "optimizer/chunks/aligned_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

namespace sluice::optimizer {
namespace {

// Large buffers are of this many bytes, times any number: what is not touched takes no memory, and
// chunks of about a size have each other's buffers.
constexpr size_t kStep = 1 << 20;

struct Large {
  std::byte* bytes = nullptr;
  size_t capacity = 0;
};

void unmap(Large buffer) { munmap(buffer.bytes, buffer.capacity); }

// Constant-initialized and never destroyed: threads that outlive main() may give buffers back.
// Allocates nothing: a destructor may not fail.
struct Kept {
  std::mutex mutex;
  std::array<Large, AlignedBuffer::kMostKept / kStep> buffers{};  // the oldest first
  size_t count = 0, bytes = 0;
  unsigned keepers = 0;

  // REQUIRES of these: mutex held.
  Large remove(size_t at) {
    const Large buffer = buffers[at];
    std::move(buffers.begin() + at + 1, buffers.begin() + count, buffers.begin() + at);
    --count;
    bytes -= buffer.capacity;
    return buffer;
  }
  void add(Large buffer) {
    while (count == buffers.size() || bytes + buffer.capacity > AlignedBuffer::kMostKept) {
      unmap(remove(0));
    }
    buffers[count++] = buffer;
    bytes += buffer.capacity;
  }
  void clear() {
    while (count != 0) unmap(remove(count - 1));
  }
};

Kept g_kept;

// Of at least that many bytes, and not much more. Empty: none is kept.
Large take(size_t bytes) {
  const std::lock_guard lock(g_kept.mutex);
  for (size_t at = g_kept.count; at-- > 0;) {
    const size_t capacity = g_kept.buffers[at].capacity;
    if (capacity >= bytes && capacity <= bytes + kStep) return g_kept.remove(at);
  }
  return {};
}

Large map(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<std::byte*>(memory), bytes};
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_((bytes + kBlock - 1) / kBlock * kBlock) {
  Large memory{nullptr, size_};
  if (size_ >= kLarge) {
    const size_t capacity = (size_ + kStep - 1) / kStep * kStep;
    memory = take(capacity);
    if (memory.bytes == nullptr) memory = map(capacity);
  } else {
    memory.bytes = static_cast<std::byte*>(std::aligned_alloc(kBlock, size_));
  }
  if (memory.bytes == nullptr) size_ = 0;
  bytes_ = {memory.bytes, Free{memory.capacity}};
}

void AlignedBuffer::Free::operator()(std::byte* bytes) const {
  if (capacity < kLarge) {
    std::free(bytes);
    return;
  }
  const std::lock_guard lock(g_kept.mutex);
  if (g_kept.keepers != 0 && capacity <= kMostKept) {
    g_kept.add({bytes, capacity});
  } else {
    unmap({bytes, capacity});
  }
}

AlignedBuffer::Keep::Keep() {
  const std::lock_guard lock(g_kept.mutex);
  ++g_kept.keepers;
}

AlignedBuffer::Keep::~Keep() {
  const std::lock_guard lock(g_kept.mutex);
  if (--g_kept.keepers == 0) g_kept.clear();
}

size_t AlignedBuffer::kept_bytes() {
  const std::lock_guard lock(g_kept.mutex);
  return g_kept.bytes;
}

}  // namespace sluice::optimizer
