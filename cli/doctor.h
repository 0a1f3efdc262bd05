// What `sluice doctor` finds.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

enum class Level {
  kGood,
  kNote,    // works, with restrictions
  kWarn,    // worth fixing
  kBroken,  // Sluice does not work here
};

struct Finding {
  std::string name;  // a JSON value: lower case, underscores
  Level level = Level::kGood;
  std::string value;
  std::string meaning;  // sentences, for a user
  std::string mend;     // what to do about it, or ""
};
using Findings = std::vector<Finding>;

// Each appends its findings. probe_path never waits longer than a few seconds, even if the mount
// hangs.
void probe_kernel(Findings* findings);
void probe_limits(Findings* findings);
void probe_installation(Findings* findings);
void probe_path(const std::string& path, Findings* findings);

}  // namespace sluice::cli
