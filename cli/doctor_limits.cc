// What limits this process: mappings, locked memory, its cgroup, /dev/shm.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cli/doctor.h"
#include "cli/files.h"
#include "cli/run_settings.h"
#include "cli/text.h"
#include "optimizer/io/memory.h"
#include "policy/planner/budget.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kUsualMapCount = 65530;
constexpr uint64_t kSmallBudget = 64 << 20;
constexpr uint64_t kSmallShm = 256 << 20;

Finding map_count() {
  const uint64_t limit = strtoull(read_word("/proc/sys/vm/max_map_count").c_str(), nullptr, 10);
  const std::string maps = read_text("/proc/self/maps");
  const auto used = static_cast<uint64_t>(std::count(maps.begin(), maps.end(), '\n'));
  Finding finding{"max_map_count", Level::kGood,
                  fmt::format("{}, of which a program as small as this uses {}", limit, used),
                  "Mappings that one process may have. Cells need a handful, page checkpoints "
                  "without guard regions up to two each; when few are left Sluice opens its "
                  "mappings rather than let the job's own fail.",
                  ""};
  if (limit < kUsualMapCount) {
    finding.level = Level::kWarn;
    finding.mend = fmt::format("sysctl vm.max_map_count={}", kUsualMapCount);
  }
  return finding;
}

Finding memlock() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return {"memlock", Level::kGood,
          limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                                          : format_bytes(static_cast<double>(limit.rlim_cur)),
          "Memory that a process may lock. The optimizer registers no more buffers with io_uring "
          "than this allows.",
          ""};
}

std::string shown(uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Whether the memory controller is in a version 1 hierarchy.
bool has_version_one() {
  std::istringstream lines(read_text("/proc/self/cgroup"));
  for (std::string id, controllers, path;
       std::getline(std::getline(lines, id, ':'), controllers, ':') && std::getline(lines, path);) {
    if (("," + controllers + ",").find(",memory,") != std::string::npos) return true;
  }
  return false;
}

Finding cgroup_limit(const policy::MemoryFacts& facts) {
  uint64_t limit = policy::kUnlimited;
  for (const policy::CgroupMemory& level : facts.cgroups) limit = std::min(limit, level.limit);
  Finding finding{"cgroup_memory", Level::kGood, "", "The machine's memory is the limit.", ""};
  if (facts.cgroups.empty()) {
    finding.value = "no memory cgroup found";
    return finding;
  }
  const int version = has_version_one() ? 1 : 2;
  if (limit == policy::kUnlimited) {
    finding.value = fmt::format("version {}, no limit", version);
    return finding;
  }
  finding.value = fmt::format("version {}, limit {}", version, shown(limit));
  finding.meaning =
      "Pre-cached pages count towards this limit: the optimizer runs in the job's cgroup and stays "
      "below it.";
  return finding;
}

Finding memory_budget(const policy::MemoryFacts& facts) {
  const uint64_t automatic = policy::budget_bytes(facts, 0);
  const uint64_t asked = chosen_memory();
  const uint64_t budget = policy::budget_bytes(facts, asked);
  Finding finding{"budget", Level::kGood, shown(budget), "", ""};
  finding.meaning =
      fmt::format("For pre-cached data: 20 % of the {} that machine and cgroup leave now{}.",
                  shown(automatic * 5), budget < automatic ? ", cut to SLUICE_MEMORY" : "");
  if (asked > budget) {
    finding.level = Level::kNote;
    finding.mend = fmt::format("SLUICE_MEMORY={} is more than that and is cut.", shown(asked));
  }
  if (budget < kSmallBudget) {
    finding.level = Level::kWarn;
    finding.mend = "Raise the cgroup's memory limit, or SLUICE_MEMORY.";
  }
  return finding;
}

Finding shm() {
  struct statvfs status {};
  Finding finding{"dev_shm", Level::kGood, "",
                  "PyTorch's workers hand their batches over there, and staged samples live "
                  "there. When it fills, programs die of SIGBUS.",
                  ""};
  if (statvfs("/dev/shm", &status) != 0) {
    finding.level = Level::kWarn;
    finding.value = "missing";
    finding.mend = "mount -t tmpfs tmpfs /dev/shm";
    return finding;
  }
  const auto size = static_cast<double>(status.f_blocks) * static_cast<double>(status.f_frsize);
  const auto left = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  finding.value = fmt::format("{}, {} left", format_bytes(size), format_bytes(left));
  if (size < kSmallShm) {
    finding.level = Level::kWarn;
    finding.mend = "Give the container more: --shm-size=1g, or mount -o remount,size=1g /dev/shm.";
  }
  return finding;
}

}  // namespace

void probe_limits(Findings* findings) {
  findings->push_back(map_count());
  findings->push_back(memlock());
  const policy::MemoryFacts facts = optimizer::MemoryReader().read();
  findings->push_back(cgroup_limit(facts));
  findings->push_back(memory_budget(facts));
  findings->push_back(shm());
}

}  // namespace sluice::cli
