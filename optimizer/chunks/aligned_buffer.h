// Memory that O_DIRECT reads into: it begins at a block, and its length is whole blocks. Moves,
// does not copy; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace sluice::optimizer {

class AlignedBuffer {
 public:
  static constexpr size_t kBlock = 4096;

  AlignedBuffer() = default;
  // Rounded up to whole blocks, not cleared. Without memory it is empty.
  explicit AlignedBuffer(size_t bytes);

  std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

  // As long as there is one of these, large buffers that are destroyed are kept for the next ones,
  // up to kMostKept bytes in all: the kernel clears memory that is new page by page, which takes as
  // long as copying it. Any thread.
  class Keep {
   public:
    Keep();
    Keep(const Keep&) = delete;
    Keep& operator=(const Keep&) = delete;
    ~Keep();
  };
  static size_t kept_bytes();
  static constexpr size_t kLarge = 256 << 10, kMostKept = 16 << 20;

 private:
  struct Free {
    size_t capacity;  // bytes
    void operator()(std::byte* bytes) const;
  };

  size_t size_ = 0;
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace sluice::optimizer
