// A large range of a file, read with several requests that are in flight at the same time: storage
// far away answers them in the time of one. A file system may divide one large read itself, but
// FUSE sends each part of it when the one before has come.
#pragma once

#include <cstddef>

namespace sluice::optimizer {

// Reads the first `size` bytes of `fd` into `out`, which has room for `room`: O_DIRECT reads whole
// blocks. 0, or an errno; ENODATA: the file ends before. Any thread; blocks in the file system, and
// uses its caller's io_uring workers, or preads where there is no io_uring.
int read_at_once(int fd, std::byte* out, size_t size, size_t room);

inline constexpr size_t kRequestBytes = 1 << 20;  // a request is a multiple of it
inline constexpr size_t kRequestsAtOnce = 32;     // at most

}  // namespace sluice::optimizer
