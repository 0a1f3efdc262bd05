#include "cli/mounts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "cli/files.h"

namespace sluice::cli {
namespace {

// Decodes spaces and the like, which are written as three octal digits.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool escape = text[at] == '\\' && at + 3 < text.size();
    if (!escape) {
      out += text[at];
      continue;
    }
    out += static_cast<char>(strtoul(text.substr(at + 1, 3).c_str(), nullptr, 8));
    at += 3;
  }
  return out;
}

bool holds(const std::string& point, const std::string& path) {
  if (point == "/") return true;
  return path.compare(0, point.size(), point) == 0 &&
         (path.size() == point.size() || path[point.size()] == '/');
}

}  // namespace

std::vector<Mount> read_mounts() {
  std::vector<Mount> mounts;
  std::istringstream lines(read_text("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Mount mount;
    std::string word;
    words >> mount.id >> word >> mount.device >> mount.root >> mount.point >> word;
    while (words >> word && word != "-") {
    }
    words >> mount.type >> mount.source >> mount.options;
    if (mount.type.empty()) continue;
    mount.root = unescaped(mount.root);
    mount.point = unescaped(mount.point);
    mount.source = unescaped(mount.source);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Mount mount_of(const std::string& path) {
  struct statx status {};
  const bool told = statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &status) == 0 &&
                    (status.stx_mask & STATX_MNT_ID) != 0;
  Mount best;
  for (Mount& mount : read_mounts()) {
    if (told && mount.id == status.stx_mnt_id) return mount;
    // Of two mounts on one mount point the later one covers the earlier.
    if (holds(mount.point, path) && mount.point.size() >= best.point.size()) best = mount;
  }
  return best;
}

bool is_remote(const std::string& type) {
  static constexpr const char* kRemote[] = {
      "nfs",    "nfs4", "cifs",     "smb3",  "smbfs",     "9p",       "ceph",  "lustre", "gpfs",
      "beegfs", "afs",  "orangefs", "pvfs2", "glusterfs", "virtiofs", "ocfs2", "gfs2",   "coda"};
  return type.compare(0, 4, "fuse") == 0 ||
         std::find(std::begin(kRemote), std::end(kRemote), type) != std::end(kRemote);
}

}  // namespace sluice::cli
