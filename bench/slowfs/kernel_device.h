// How the session reads from and writes to the kernel. A source file of its own because the
// kernel's fuse header and libfuse's do not go together.
#pragma once

#include <sys/types.h>

#include <cstddef>

struct iovec;

namespace sluice::slowfs {

// For fuse_custom_io. Writes an answer; the first, which is the one to FUSE_INIT, is made to ask
// for parallel lookups and listings in one folder: libfuse 3.14 never sets that bit.
// Then calls the Filesystem's on_mounted. `userdata` is the Filesystem; one session in a
// process. Any thread.
ssize_t write_device(int fd, iovec* parts, int count, void* userdata);

// For fuse_custom_io. Reads a request. Any thread.
ssize_t read_device(int fd, void* buffer, size_t size, void* userdata);

// For fuse_custom_io. Moves bytes of a backing file to the kernel. Any thread.
ssize_t splice_to_device(int from, off_t* from_offset, int to, off_t* to_offset, size_t size,
                         unsigned flags, void* userdata);

}  // namespace sluice::slowfs
