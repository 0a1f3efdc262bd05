#include "bench/slowfs/read_ahead.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sluice::slowfs {
namespace {

// "MAJOR:MINOR" of the topmost mount there, from the kernel's table; empty if there is none.
std::string device_of(const std::string& mountpoint) {
  std::ifstream table("/proc/self/mountinfo");
  std::string line;
  std::string device;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string id, parent, number, root, where;
    fields >> id >> parent >> number >> root >> where;
    // Blanks, tabs, newlines and backslashes are written as \ooo.
    std::string plain;
    for (size_t i = 0; i < where.size(); ++i) {
      if (where[i] == '\\' && i + 3 < where.size()) {
        plain += static_cast<char>(std::strtol(where.substr(i + 1, 3).c_str(), nullptr, 8));
        i += 3;
      } else {
        plain += where[i];
      }
    }
    if (plain == mountpoint) device = number;
  }
  return device;
}

bool read_number(const std::string& path, uint64_t* value) {
  std::ifstream file(path);
  return static_cast<bool>(file >> *value);
}

}  // namespace

std::string set_read_ahead(const std::string& mountpoint, uint32_t kib) {
  const std::string device = device_of(mountpoint);
  if (device.empty()) return "cannot find the mount in /proc/self/mountinfo";
  const std::string path = "/sys/class/bdi/" + device + "/read_ahead_kb";
  uint64_t now = 0;
  if (!read_number(path, &now)) return "cannot read " + path;
  if (now == kib) return {};
  {
    std::ofstream file(path);
    file << kib << std::flush;
  }
  if (read_number(path, &now) && now == kib) return {};
  return "a read-ahead of " + std::to_string(kib) + " KiB needs root; the kernel gave " +
         std::to_string(now) + " KiB";
}

}  // namespace sluice::slowfs
