#include "optimizer/stage/pack_version.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "optimizer/io/reopen.h"
#include "optimizer/packs/checksum.h"

namespace sluice::optimizer {
namespace {

constexpr unsigned kMountIdUnique = 0x4000;  // STATX_MNT_ID_UNIQUE, of Linux 6.8
// Within this time after a change another change may leave the file's times as they are.
constexpr int64_t kSettledSeconds = 3;

constexpr std::array<std::string_view, 18> kShowChanges = {
    "nfs",  "nfs4", "lustre", "ceph", "cifs",  "smb3",  "gpfs",    "beegfs", "afs",
    "ext2", "ext3", "ext4",   "xfs",  "btrfs", "tmpfs", "overlay", "zfs",    "f2fs"};

uint64_t mount_number(int fd) {
  struct statx about {};
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kMountIdUnique, &about) != 0) return 0;
  return (about.stx_mask & kMountIdUnique) != 0 ? about.stx_mnt_id : 0;
}

// Identifies the present boot of the machine.
const std::string& boot() {
  static const std::string& id = *new std::string([] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(file, text);
    return text;
  }());
  return id;
}

}  // namespace

// Reads the mount table once per mount, or per device if the kernel has no mount number.
StageMount stage_mount(int fd, uint64_t device) {
  // Never destroyed: a thread that hung in a file system may return while the process ends.
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<uint64_t, uint64_t>, StageMount>;
  const uint64_t number = mount_number(fd);
  const std::pair key(number, number == 0 ? device : 0);
  const std::lock_guard lock(mutex);
  const auto at = known.find(key);
  if (at != known.end()) return at->second;
  const MountFacts facts = mount_facts(device);
  const bool shows =
      std::find(kShowChanges.begin(), kShowChanges.end(), facts.type) != kShowChanges.end();
  return known[key] = {facts.local, shows, number};
}

std::optional<protocol::PackVersion> pack_version(const protocol::StageStat& stat,
                                                  const StageMount& mount) {
  uint64_t inode = stat.inode;
  if (!mount.shows_changes) {
    if (mount.number == 0 || boot().empty()) return {};
    const std::string name = boot() + " " + std::to_string(mount.number);
    inode ^= Checksum::of(name.data(), name.size());
  }
  return protocol::PackVersion{inode,          stat.size,        stat.modified_s,
                               stat.changed_s, stat.modified_ns, stat.changed_ns};
}

uint64_t version_in_run(const protocol::StageStat& stat) {
  const std::array<uint64_t, 11> state = {stat.device,
                                          stat.inode,
                                          stat.size,
                                          static_cast<uint64_t>(stat.modified_s),
                                          static_cast<uint64_t>(stat.changed_s),
                                          uint64_t{stat.modified_ns} << 32 | stat.changed_ns,
                                          stat.mode,
                                          stat.uid,
                                          stat.gid,
                                          stat.links,
                                          stat.mount};
  return Checksum::of(state.data(), sizeof state);
}

bool is_settled(const protocol::StageStat& stat) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return stat.changed_s + kSettledSeconds <= now.tv_sec;
}

}  // namespace sluice::optimizer
