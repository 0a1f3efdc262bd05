// copy_file_range() from a staged copy whose original has no name any more (it was replaced or
// unlinked since it was opened): the kernel refuses it between two file systems, and the copy is on
// another file system than the one that the job opened.
#pragma once

#include <sys/types.h>

namespace sluice::preload {

// Copies `size` bytes as copy_file_range() would from the original, if `from` reads a copy and
// `to` is on the original's file system; else -1 with errno EXDEV. A null offset pointer means the
// descriptor's own offset. Any thread; not async-signal-safe with respect to the same descriptors.
ssize_t copy_range_of_staged(int from, off64_t* from_offset, int to, off64_t* to_offset,
                             size_t size);

}  // namespace sluice::preload
