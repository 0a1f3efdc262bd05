#include "optimizer/io/memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::CgroupMemory;
using policy::MemoryFacts;
using policy::parse_field;
using policy::parse_limit;
using policy::parse_pressure;
namespace {

struct Mounts {
  std::string v1, v2;  // mount points
};

Mounts find_mounts() {
  Mounts found;
  std::istringstream lines(read_text("/proc/self/mounts"));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string source, target, type, flags;
    words >> source >> target >> type >> flags;
    if (type == "cgroup2" && found.v2.empty()) found.v2 = target;
    if (type == "cgroup" && ("," + flags + ",").find(",memory,") != std::string::npos) {
      found.v1 = target;
    }
  }
  return found;
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

std::string read_text(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while (fd && (got = read(fd.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > (1 << 20)) break;
  }
  return text;
}

MemoryReader::MemoryReader() {
  const Mounts mounts = find_mounts();
  std::string v1_path, v2_path;
  bool has_v1 = false;
  std::istringstream lines(read_text("/proc/self/cgroup"));
  std::string line;
  while (std::getline(lines, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers.find(",memory,") != std::string::npos) {
      has_v1 = true;
      v1_path = line.substr(second + 1);
    } else if (controllers == ",,") {
      v2_path = line.substr(second + 1);
    }
  }
  unified_ = !(has_v1 && !mounts.v1.empty());
  const std::string root = unified_ ? mounts.v2 : mounts.v1;
  std::string path = unified_ ? v2_path : v1_path;
  if (root.empty()) return;
  // In a container the path may be the host's while the mount has the container's cgroup as root.
  if (!is_folder(root + path)) path = "/";
  while (true) {
    folders_.push_back(path == "/" ? root : root + path);
    if (path == "/" || path.empty()) break;
    path = path.substr(0, std::max<size_t>(1, path.find_last_of('/')));
  }
}

MemoryFacts MemoryReader::read() const {
  MemoryFacts facts;
  facts.available = parse_field(read_text("/proc/meminfo"), "MemAvailable");
  facts.pressure = parse_pressure(read_text("/proc/pressure/memory"));
  for (const std::string& folder : folders_) {
    CgroupMemory level;
    const std::string stat = read_text(folder + "/memory.stat");
    if (unified_) {
      facts.pressure =
          std::max(facts.pressure, parse_pressure(read_text(folder + "/memory.pressure")));
      level.limit = std::min(parse_limit(read_text(folder + "/memory.max")),
                             parse_limit(read_text(folder + "/memory.high")));
      const std::string current = read_text(folder + "/memory.current");
      level.usage = current.empty() ? 0 : parse_limit(current);
      level.reclaimable = parse_field(stat, "inactive_file") + parse_field(stat, "active_file");
    } else {
      level.limit = parse_limit(read_text(folder + "/memory.limit_in_bytes"));
      const std::string usage = read_text(folder + "/memory.usage_in_bytes");
      level.usage = usage.empty() ? 0 : parse_limit(usage);
      level.reclaimable =
          parse_field(stat, "total_inactive_file") + parse_field(stat, "total_active_file");
    }
    facts.cgroups.push_back(level);
  }
  return facts;
}

}  // namespace sluice::optimizer
