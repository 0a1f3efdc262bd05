// Which files lie on slow storage. Any thread, not from a signal handler.
#pragma once

#include <sys/stat.h>

namespace sluice::preload {

// Whether the regular file or folder `fd` is on a network or FUSE mount. Asks the kernel once for
// each mount (on such a mount that may take a round trip), and never where a block device is
// beneath.
bool on_slow_mount(int fd, const struct stat& about);

}  // namespace sluice::preload
