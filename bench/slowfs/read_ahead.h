// The kernel's read-ahead of one mount.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::slowfs {

// Sets the read-ahead of what is mounted at `mountpoint` (absolute), without asking the mount
// anything, and reads it back. Returns an empty string, or one line that says why it is not as
// wanted.
std::string set_read_ahead(const std::string& mountpoint, uint32_t kib);

}  // namespace sluice::slowfs
