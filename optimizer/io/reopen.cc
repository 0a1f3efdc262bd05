#include "optimizer/io/reopen.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "optimizer/io/engine.h"
#include "optimizer/io/memory.h"
#include "optimizer/io/residency.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kEnoughToJudge = 64 * 4096;  // cached bytes; with fewer nothing is concluded

constexpr const char* kRemote[] = {"nfs", "nfs4", "cifs", "smb3",   "smb",      "lustre",   "ceph",
                                   "9p",  "afs",  "gpfs", "beegfs", "orangefs", "glusterfs"};

// From the mount table: statfs() would query the mount, which may be slow or hang.
std::string mount_type(uint64_t device) {
  const std::string numbers = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::istringstream lines(read_text("/proc/self/mountinfo"));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string id, parent, device_text, word, type;
    words >> id >> parent >> device_text;
    if (device_text != numbers) continue;
    while (words >> word && word != "-") {
    }
    words >> type;
    return type;
  }
  return {};
}

uint64_t read_ahead_bytes(uint64_t device) {
  const std::string numbers = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  for (const std::string& path : {"/sys/class/bdi/" + numbers + "/read_ahead_kb",
                                  "/sys/dev/block/" + numbers + "/queue/read_ahead_kb",
                                  "/sys/dev/block/" + numbers + "/../queue/read_ahead_kb"}) {
    const std::string text = read_text(path);
    if (!text.empty()) return strtoull(text.c_str(), nullptr, 10) * kKiB;
  }
  return 0;
}

int open_again(int fd, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return open(path.c_str(), flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

uint64_t cached(const FileResidency& residency, policy::Range range) {
  uint64_t bytes = 0;
  return residency.cached(range, &bytes) ? bytes : 0;
}

}  // namespace

MountFacts mount_facts(uint64_t device) {
  MountFacts facts;

  facts.type = mount_type(device);
  const bool remote = std::any_of(std::begin(kRemote), std::end(kRemote),
                                  [&](const char* type) { return facts.type == type; });
  facts.local = !remote && !facts.fuse();
  facts.read_ahead = read_ahead_bytes(device);
  // A network mount splits a buffered read into requests of its read-ahead size, one after another,
  // so only separate reads of that size keep its link busy. A disk needs few large reads.
  facts.block = static_cast<uint32_t>(
      facts.local ? 1024 * kKiB : std::clamp<uint64_t>(facts.read_ahead, 128 * kKiB, 1024 * kKiB));
  facts.max_depth = facts.local ? 16 : kMostOfMount;
  return facts;
}

Reopened reopen(int passed, uint64_t device, uint64_t inode, bool no_cachestat) {
  Reopened result;
  struct stat info {};
  if (fstat(passed, &info) != 0) {
    result.problem = std::string("fstat: ") + strerror(errno);
    return result;
  }
  if (!S_ISREG(info.st_mode)) {
    result.problem = "not a regular file";
    return result;
  }
  if (info.st_dev != device || info.st_ino != inode) {
    result.problem = "the descriptor is of another file than the message says";
    return result;
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  uint64_t before = 0;
  if (!cached_bytes(passed, {0, size}, no_cachestat, &before)) before = 0;
  UniqueFd fd(open_again(passed, O_NOATIME));
  if (!fd && errno == EPERM) fd.reset(open_again(passed, 0));  // not the owner
  if (!fd) {
    result.problem = std::string("open: ") + strerror(errno);
    return result;
  }
  struct stat again {};
  if (fstat(fd.get(), &again) != 0 || again.st_dev != info.st_dev || again.st_ino != info.st_ino) {
    result.problem = "reopening led to another file";
    return result;
  }
  result.residency = std::make_shared<FileResidency>(fd.get(), size, no_cachestat);
  const uint64_t after = cached(*result.residency, {0, size});
  result.cache_dropped = before >= kEnoughToJudge && after < before / 2;
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  result.mount = mount_facts(info.st_dev);
  result.size = size;
  result.modified_ns = info.st_mtim.tv_sec * int64_t{1000000000} + info.st_mtim.tv_nsec;
  result.fd = std::move(fd);
  return result;
}

bool cache_dies_at_open(int fd, policy::Range range, const FileResidency& residency) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const uint64_t before = cached(residency, range);
    const UniqueFd again(open_again(fd, 0));
    if (!again) return false;
    const uint64_t after = cached(residency, range);
    if (before > 0 && after < before / 2) return true;
  }
  return false;
}

}  // namespace sluice::optimizer
