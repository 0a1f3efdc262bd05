// A hash of a path, by which a job finds it among a few others: a collision costs a question that
// is answered with no. Freestanding; any thread; async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::protocol {

// FNV-1a; never 0, which means no path.
constexpr uint64_t path_hash(const char* path, size_t length) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (size_t i = 0; i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(path[i])) * 0x100000001b3ULL;
  }
  return hash != 0 ? hash : 1;
}

}  // namespace sluice::protocol
