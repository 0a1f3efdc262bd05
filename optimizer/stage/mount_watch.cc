#include "optimizer/stage/mount_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace sluice::optimizer {
namespace {

bool is_octal(char digit) { return digit >= '0' && digit <= '7'; }

// Undoes the escapes of proc_pid_mountinfo(5): space, tab, newline and backslash as \ooo.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
        is_octal(text[at + 2]) && is_octal(text[at + 3])) {
      plain += static_cast<char>((text[at + 1] - '0') << 6 | (text[at + 2] - '0') << 3 |
                                 (text[at + 3] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace

std::set<std::string> mounts_of(std::string_view mountinfo) {
  constexpr size_t kNumber = 0, kPoint = 4;
  std::set<std::string> mounts;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    std::string_view fields[kPoint + 1];
    size_t count = 0;
    for (; count <= kPoint && !line.empty(); ++count) {
      const size_t space = std::min(line.find(' '), line.size());
      fields[count] = line.substr(0, space);
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    if (count <= kPoint || !fields[kPoint].starts_with('/')) continue;
    mounts.insert(std::string(fields[kNumber]) + unescaped(fields[kPoint]));
  }
  return mounts;
}

MountWatch::MountWatch() : fd_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  known_ = read();
}

std::set<std::string> MountWatch::read() const {
  std::string text;
  if (!fd_ || lseek(fd_.get(), 0, SEEK_SET) != 0) return {};
  char buffer[16384];
  for (ssize_t got = 0; (got = ::read(fd_.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return mounts_of(text);
}

std::vector<std::string> MountWatch::changed() {
  std::set<std::string> now = read();
  std::vector<std::string> differing;
  std::set_symmetric_difference(known_.begin(), known_.end(), now.begin(), now.end(),
                                std::back_inserter(differing));
  for (std::string& mount : differing) mount.erase(0, mount.find('/'));
  known_ = std::move(now);
  return differing;
}

}  // namespace sluice::optimizer
