// Drops caches of this mount alone; the kernel's own switch drops those of all who use the machine.
#include <string>
#include <unordered_map>

#include "bench/slowfs/request.h"

namespace sluice::slowfs {

void drop_cached(const Filesystem& fs) {
  const auto nodes = fs.inodes.all();
  std::unordered_map<std::string, uint64_t> folders;
  folders.reserve(nodes.size());
  for (const auto& [node, path] : nodes) folders.emplace(path, node);
  fuse_lowlevel_notify_inval_inode(fs.session, Inodes::kRoot, 0, 0);
  for (const auto& [node, path] : nodes) {
    fuse_lowlevel_notify_inval_inode(fs.session, node, 0, 0);
    const size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);  // npos + 1 is 0
    const auto above =
        slash == std::string::npos ? folders.end() : folders.find(path.substr(0, slash));
    if (slash != std::string::npos && above == folders.end())
      continue;  // the kernel holds no folder
    const uint64_t parent = slash == std::string::npos ? Inodes::kRoot : above->second;
    fuse_lowlevel_notify_inval_entry(fs.session, parent, name.c_str(), name.size());
  }
}

}  // namespace sluice::slowfs
