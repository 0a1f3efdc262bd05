#include "optimizer/stage/copy_parts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "optimizer/stage/folder_visits.h"
#include "optimizer/stage/stage_folder.h"

namespace sluice::optimizer {

using policy::StagePlan;
using protocol::StageStat;
namespace {

using Failure = StagePlan::Failure;

constexpr uint64_t kInode = 1024;  // bytes that tmpfs takes per file besides its pages

// What the kernel knows of folders is the process's. Its threads may outlive main().
FolderVisits& folder_visits() {
  static FolderVisits* const visits = new FolderVisits;
  return *visits;
}

}  // namespace

CopyResult not_copied(Failure failure, std::string why) {
  CopyResult result;
  result.failure = failure;
  result.why = std::move(why);
  return result;
}

CopyResult not_copied(int error, const std::string& path) {
  return not_copied(error == ENOSPC || error == EDQUOT ? Failure::kFull : Failure::kError,
                    path + ": " + strerror(error));
}

bool stat_of(int fd, int flags, StageStat* out) {
  return stat_at(fd, "", AT_EMPTY_PATH | flags, out);
}

bool stat_at(int folder, const char* name, int flags, StageStat* out) {
  struct statx about {};
  if (statx(folder, name, flags, STATX_BASIC_STATS | STATX_BTIME, &about) != 0) return false;
  *out = {};
  out->device = makedev(about.stx_dev_major, about.stx_dev_minor);
  out->rdevice = makedev(about.stx_rdev_major, about.stx_rdev_minor);
  out->inode = about.stx_ino;
  out->size = about.stx_size;
  out->blocks = about.stx_blocks;
  out->accessed_s = about.stx_atime.tv_sec;
  out->modified_s = about.stx_mtime.tv_sec;
  out->changed_s = about.stx_ctime.tv_sec;
  out->born_s = about.stx_btime.tv_sec;
  out->accessed_ns = about.stx_atime.tv_nsec;
  out->modified_ns = about.stx_mtime.tv_nsec;
  out->changed_ns = about.stx_ctime.tv_nsec;
  out->born_ns = about.stx_btime.tv_nsec;
  out->mode = about.stx_mode;
  out->links = about.stx_nlink;
  out->uid = about.stx_uid;
  out->gid = about.stx_gid;
  out->block_size = about.stx_blksize;
  out->mask = about.stx_mask;
  out->attributes = about.stx_attributes;
  out->attributes_mask = about.stx_attributes_mask;
  out->mount = about.stx_mnt_id;
  return true;
}

bool same(const StageStat& a, const StageStat& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size &&
         a.modified_s == b.modified_s && a.modified_ns == b.modified_ns &&
         a.changed_s == b.changed_s && a.changed_ns == b.changed_ns && a.mode == b.mode &&
         a.uid == b.uid && a.gid == b.gid && a.links == b.links;
}

std::string proc_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

CopyResult examine(const std::string& path, const CopyRules& rules, UniqueFd* place,
                   StageMount* mount) {
  CopyResult result;
  folder_visits().visit(path);
  // O_PATH, to find its type first: opening a device or a pipe has side effects. The path is walked
  // once: while the storage was asked for its last part, what the kernel knew of its folders may
  // have expired.
  place->reset(open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (!*place || !stat_of(place->get(), 0, &result.stat)) return not_copied(errno, path);
  if (S_ISLNK(result.stat.mode)) {
    result.flags |= protocol::kStageLink;
    place->reset(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!*place || !stat_of(place->get(), 0, &result.stat)) return not_copied(errno, path);
  }
  if (!S_ISREG(result.stat.mode)) return not_copied(Failure::kError, path + ": not a regular file");
  *mount = stage_mount(place->get(), result.stat.device);
  if (!rules.any_mount && mount->local) return not_copied(Failure::kMount);
  if (result.stat.size > rules.most_bytes) return not_copied(Failure::kError);
  result.good = true;
  return result;
}

UniqueFd new_copy(int folder) {
  return UniqueFd(openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400));
}

bool publish_copy(const UniqueFd& copy, int folder, uint64_t name, CopyResult* result) {
  if (linkat(AT_FDCWD, proc_path(copy.get()).c_str(), folder, copy_name(name).data(),
             AT_SYMLINK_FOLLOW) != 0) {
    return false;
  }
  struct stat charged {};
  fstat(copy.get(), &charged);
  result->inode = charged.st_ino;
  result->charged = static_cast<uint64_t>(charged.st_blocks) * 512 + kInode;
  result->good = true;
  return true;
}

}  // namespace sluice::optimizer
