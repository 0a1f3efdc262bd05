#include "optimizer/io/list_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string_view>

namespace sluice::optimizer {
namespace {

using policy::FolderKey;

FolderKey key_of(const struct stat& about) { return {about.st_dev, about.st_ino}; }

UniqueFd open_below(int base, const char* path) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(syscall(SYS_openat2, base, path, &how, sizeof how)));
}

bool is_dots(std::string_view name) { return name == "." || name == ".."; }

}  // namespace

std::optional<FolderAbove> open_above(int passed) {
  struct stat about {};
  if (fstat(passed, &about) != 0 || !S_ISDIR(about.st_mode)) return std::nullopt;
  FolderAbove above;
  above.folder = key_of(about);
  above.fd = UniqueFd(openat(passed, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!above.fd || fstat(above.fd.get(), &about) != 0) return std::nullopt;
  above.parent = key_of(about);
  if (above.parent.device != above.folder.device || above.parent == above.folder) {
    return std::nullopt;
  }
  return above;
}

std::optional<FolderListing> list_folder(int base, const std::string& path) {
  const UniqueFd folder = open_below(base, path.empty() ? "." : path.c_str());
  if (!folder) return std::nullopt;
  FolderListing listing;
  alignas(dirent64) char buffer[32 << 10];
  for (;;) {
    const ssize_t got = getdents64(folder.get(), buffer, sizeof buffer);
    if (got < 0) return std::nullopt;
    if (got == 0) return listing;
    const char* name = nullptr;
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      if (is_dots(entry->d_name)) continue;
      name = entry->d_name;
      ++listing.entries;
      if (entry->d_type == DT_DIR) listing.subfolders.push_back({name, entry->d_ino});
    }
    // A file system that sends attributes with the names does so while they are asked for.
    struct stat ignored {};
    if (name != nullptr)
      fstatat(folder.get(), name, &ignored, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
  }
}

}  // namespace sluice::optimizer
