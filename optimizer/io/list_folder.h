// Lists folders, so that the kernel has their names, and of most entries the attributes. Everything
// here may block in the file system: run it on an executor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/folders/scan_plan.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

struct FolderAbove {
  policy::FolderKey folder, parent;
  UniqueFd fd;  // of the parent, O_PATH
};

// The parent of the folder `passed`, which the caller still owns. nullopt: `passed` is no folder,
// or the root of its mount.
std::optional<FolderAbove> open_above(int passed);

struct FolderListing {
  std::vector<policy::Subfolder> subfolders;  // in the file system's order
  uint64_t entries = 0;
};

// What the folder `path` below `base` contains; empty: `base` itself. Never leaves the mount,
// follows no symbolic link, mounts nothing. nullopt: it cannot be listed, or this kernel has no
// openat2().
std::optional<FolderListing> list_folder(int base, const std::string& path);

}  // namespace sluice::optimizer
