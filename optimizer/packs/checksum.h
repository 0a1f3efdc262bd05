// The checksum of packs: XXH3, 64 bits. Pure; one thread.
#pragma once

// Compiled in, since an installed program needs no library but the C library.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace sluice::optimizer {

class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, size_t size) { XXH3_64bits_update(&state_, bytes, size); }
  uint64_t value() const { return XXH3_64bits_digest(&state_); }

  static uint64_t of(const void* bytes, size_t size) { return XXH3_64bits(bytes, size); }

 private:
  XXH3_state_t state_;
};

}  // namespace sluice::optimizer
