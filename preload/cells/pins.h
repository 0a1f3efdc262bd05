// Buffers that are passed to the kernel. While a Pins exists, the cells that its buffers overlap
// are open and no thread can close them.
//
// Costs two loads while nothing is protected where the buffer lies. Any thread, signal handlers
// included. If siglongjmp skips the destructor, the cells stay open: slower, never wrong.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "preload/handler/mapping.h"

namespace sluice::preload {

class Pins {
 public:
  Pins() = default;
  Pins(const void* buffer, size_t length) { add(buffer, length); }
  Pins(const struct iovec* parts, size_t count) { add(parts, count); }
  ~Pins() {
    if (count_ != 0) release();
  }
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  void add(const void* buffer, size_t length) {
    const auto begin = reinterpret_cast<uintptr_t>(buffer);
    uintptr_t end = 0;
    if (__builtin_add_overflow(begin, length, &end)) end = UINTPTR_MAX;
    if (__builtin_expect(maybe_protected(begin, end), 0)) pin(begin, end);
  }
  // An array of `count` buffers, and the array itself.
  void add(const struct iovec* parts, size_t count);
  // A NUL-terminated string, of which at most `limit` bytes are used.
  void add_string(const char* text, size_t limit = SIZE_MAX);

  bool any() const { return count_ != 0 || sticky_; }

 private:
  static constexpr uint32_t kRanges = 8;  // more ranges than that stay open for good
  struct Range {
    Mapping* mapping;
    uint32_t first, last;
  };
  void pin(uintptr_t begin, uintptr_t end);
  void release();

  uint32_t count_ = 0;
  bool sticky_ = false;
  uint32_t generation_ = 0;
  Range ranges_[kRanges];
};

// Opens and never unpins the cells that a buffer overlaps: for calls that return before the kernel
// has read it.
void open_for_good(const void* buffer, size_t length);

}  // namespace sluice::preload
