// Reads the inputs of policy/planner/budget.h from /proc and the memory cgroup (version 1 or 2).
#pragma once

#include <string>

#include "policy/planner/budget.h"

namespace sluice::optimizer {

// Finds this process's memory cgroup once; read() may be called repeatedly, from one thread.
class MemoryReader {
 public:
  MemoryReader();
  policy::MemoryFacts read() const;

 private:
  std::vector<std::string> folders_;  // from the own cgroup to the root
  bool unified_ = false;
};

// All of a small file; empty if it cannot be read.
std::string read_text(const std::string& path);

}  // namespace sluice::optimizer
