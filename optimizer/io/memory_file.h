// The memfds that jobs pass: read and written by calls that fail where a mapping would kill.
// Thread-safe.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

// Only memory has seals: a descriptor of a file system that could make us wait has none.
bool is_memory(int fd);

bool is_as_long(int fd, uint64_t size);

// `size` bytes of a memfd from byte `from` on. False if it is shorter.
bool read_memory(int fd, void* out, uint64_t size, uint64_t from = 0);

// Writes the first `size` bytes of a memfd, which is as long already. False if it is shorter, or
// sealed.
bool write_memory(int fd, const void* data, uint64_t size);

}  // namespace sluice::optimizer
