// Who started a process.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::optimizer {

// Its parent, that one's parent and so on, nearest first; at most `most`. Empty if the process has
// ended, or belongs to another pid namespace. Reads a line of /proc for each, and waits for nobody.
std::vector<uint32_t> ancestors_of(uint32_t pid, unsigned most);

}  // namespace sluice::optimizer
