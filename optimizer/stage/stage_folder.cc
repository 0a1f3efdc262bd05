#include "optimizer/stage/stage_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "optimizer/io/clock.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kLeast = 8 << 20;  // bytes; least free space of a file system for the stage
// Bytes; of a smaller file system, as in containers, at most 1/kSmallShare is taken.
constexpr uint64_t kSmall = 1 << 30, kSmallShare = 8;
constexpr const char* kLock = "lock";

std::vector<std::string> memory_folders() {
  return {"/dev/shm", "/run/user/" + std::to_string(geteuid())};
}

std::string ours_in(const std::string& base) {
  return base + "/sluice-" + std::to_string(geteuid());
}

// A folder, not a link, that this user owns and no other user may access.
bool is_ours(const std::string& folder) {
  struct stat about {};
  return lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == geteuid() && (about.st_mode & 077) == 0;
}

// The entries of a folder, without "." and "..".
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir.get())) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      names.emplace_back(entry->d_name);
    }
  }
  return names;
}

// Removes the lock last: until then no other optimizer treats the folder as left behind.
void remove_folder(const std::string& folder) {
  const UniqueFd inside(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  for (const std::string& name : entries_of(folder)) {
    if (name != kLock) unlinkat(inside.get(), name.c_str(), 0);
  }
  unlinkat(inside.get(), kLock, 0);
  rmdir(folder.c_str());
}

bool left_behind(const std::string& folder) {
  const UniqueFd lock(open((folder + "/" + kLock).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  // Without a lock file it is being created or was half removed; only in the latter case is it old.
  if (!lock) {
    struct stat about {};
    constexpr time_t kOld = 60;
    return lstat(folder.c_str(), &about) == 0 && time(nullptr) - about.st_mtime > kOld;
  }
  return flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

void StageFolder::clear() {
  if (path_.empty()) return;
  remove_folder(path_);
  rmdir(path_.substr(0, path_.rfind('/')).c_str());  // succeeds if it was the last
  path_.clear();
}

unsigned StageFolder::remove_leftovers(const std::string& fallback) {
  unsigned removed = 0;
  std::vector<std::string> bases = memory_folders();
  if (!fallback.empty()) bases.push_back(fallback);
  for (const std::string& base : bases) {
    const std::string ours = ours_in(base);
    if (!is_ours(ours)) continue;
    for (const std::string& name : entries_of(ours)) {
      std::string folder = ours;
      folder.append("/").append(name);
      if (!is_ours(folder) || !left_behind(folder)) continue;
      remove_folder(folder);
      ++removed;
    }
    rmdir(ours.c_str());
  }
  return removed;
}

bool StageFolder::create_in(const std::string& base, bool memory, std::string* reason) {
  struct statfs about {};
  if (statfs(base.c_str(), &about) != 0) {
    *reason = base + ": " + strerror(errno);
    return false;
  }
  if (memory && about.f_type != TMPFS_MAGIC && about.f_type != RAMFS_MAGIC) {
    *reason = base + " is no memory file system";
    return false;
  }
  if (about.f_blocks != 0 && about.f_bavail * about.f_bsize < kLeast) {
    *reason = base + " is full or too small";
    return false;
  }
  const std::string ours = ours_in(base);
  if (mkdir(ours.c_str(), 0700) != 0 && errno != EEXIST) {
    *reason = ours + ": " + strerror(errno);
    return false;
  }
  if (!is_ours(ours)) {
    *reason = ours + " is not this user's alone";
    return false;
  }
  const std::string path = ours + "/" + std::to_string(getpid()) + "-" + std::to_string(now_ns());
  if (mkdir(path.c_str(), 0700) != 0) {
    *reason = path + ": " + strerror(errno);
    return false;
  }
  lock_.reset(open((path + "/" + kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  fd_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock_ || !fd_ || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    *reason = path + ": " + strerror(errno);
    remove_folder(path);
    return false;
  }
  path_ = path;
  return true;
}

bool StageFolder::create(const std::string& fallback, std::string* reason) {
  const auto try_in = [&](const std::string& base, bool memory) {
    std::string why;
    // Another optimizer that starts now may remove the new folder as left behind: try again.
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (create_in(base, memory, &why)) return true;
    }
    *reason += (reason->empty() ? "" : "; ") + why;
    return false;
  };
  for (const std::string& base : memory_folders()) {
    if (try_in(base, true)) return true;
  }
  if (fallback.empty()) return false;
  remove_leftovers(fallback);  // not known when the others were removed
  return try_in(fallback, false);
}

uint64_t StageFolder::room_in(uint64_t size, uint64_t free, uint64_t used) {
  if (size == 0) return UINT64_MAX;
  if (size >= kSmall) return used + free / 10 * 9;
  return std::min(size, free + used) / kSmallShare;
}

uint64_t StageFolder::room(uint64_t used) const {
  struct statfs about {};
  if (fstatfs(fd_.get(), &about) != 0) return 0;
  const auto block = static_cast<uint64_t>(about.f_bsize);
  return room_in(static_cast<uint64_t>(about.f_blocks) * block,
                 static_cast<uint64_t>(about.f_bavail) * block, used);
}

std::array<char, 17> copy_name(uint64_t name) {
  std::array<char, 17> text{};
  snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(name));
  return text;
}

void StageFolder::remove(uint64_t name) const { unlinkat(fd_.get(), copy_name(name).data(), 0); }

UniqueFd StageFolder::open_copy(uint64_t name) const {
  return UniqueFd(openat(fd_.get(), copy_name(name).data(), O_RDONLY | O_CLOEXEC));
}

}  // namespace sluice::optimizer
