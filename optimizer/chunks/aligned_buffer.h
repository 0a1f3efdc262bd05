// Memory that O_DIRECT reads into: it begins at a block, and its length is whole blocks. Moves,
// does not copy; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

namespace sluice::optimizer {

class AlignedBuffer {
 public:
  static constexpr size_t kBlock = 4096;

  AlignedBuffer() = default;
  // Rounded up to whole blocks, not cleared. Without memory it is empty.
  explicit AlignedBuffer(size_t bytes)
      : size_((bytes + kBlock - 1) / kBlock * kBlock),
        bytes_(static_cast<std::byte*>(std::aligned_alloc(kBlock, size_))) {
    if (bytes_ == nullptr) size_ = 0;
  }

  std::byte* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  size_t size_ = 0;
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace sluice::optimizer
