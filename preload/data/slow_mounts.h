// Which files lie on slow storage. Any thread, not from a signal handler.
#pragma once

#include <sys/stat.h>

namespace sluice::preload {

// Whether the regular file or folder `fd` is on a network or FUSE mount. Reads the table of mounts
// once for each mount, and never where a block device is beneath: statfs() would take a round trip
// on such a mount.
bool on_slow_mount(int fd, const struct stat& about);

}  // namespace sluice::preload
