// Access to memfds that jobs pass, by read and write calls: where they return an error, a mapping
// would raise SIGBUS. Thread-safe.
#pragma once

#include <cstdint>

namespace sluice::optimizer {

// Only memory files have seals: this excludes descriptors of file systems whose calls may block.
bool is_memory(int fd);

bool is_as_long(int fd, uint64_t size);

// Reads `size` bytes of a memfd from byte `from` on. False if it is shorter.
bool read_memory(int fd, void* out, uint64_t size, uint64_t from = 0);

// Overwrites the first `size` bytes of a memfd. False if it is shorter, or sealed.
bool write_memory(int fd, const void* data, uint64_t size);

}  // namespace sluice::optimizer
