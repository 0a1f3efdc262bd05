// Reads what plan/budget.h needs from /proc and the memory cgroup (version 1 or 2).
#pragma once

#include <string>

#include "policy/planner/budget.h"

namespace sluice::optimizer {

// Finds our memory cgroup once; read() may be called again and again, from one thread.
class MemoryReader {
 public:
  MemoryReader();
  MemoryFacts read() const;

 private:
  std::vector<std::string> folders_;  // from ours to the root
  bool unified_ = false;
};

// The whole of a small file; empty if it cannot be read.
std::string read_text(const std::string& path);

}  // namespace sluice::optimizer
