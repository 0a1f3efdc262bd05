// The processes that a process descends from.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::optimizer {

// Parent, grandparent and so on of `pid`, nearest first; at most `most`. Empty if the process has
// ended or is in another pid namespace. Reads one line of /proc for each; does not block.
std::vector<uint32_t> ancestors_of(uint32_t pid, unsigned most);

}  // namespace sluice::optimizer
