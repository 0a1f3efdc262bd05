#include "optimizer/stage/stage_copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "optimizer/io/clock.h"
#include "optimizer/io/residency.h"
#include "optimizer/io/transfer.h"
#include "optimizer/stage/chunk_copy.h"
#include "optimizer/stage/copy_parts.h"
#include "optimizer/stage/pack_version.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::FileTable;
using policy::Range;
using policy::StagePlan;
namespace {

using Failure = StagePlan::Failure;
using protocol::StageStat;

constexpr size_t kBuffer = 256 << 10;

// Copies all of `from` into `to`. 0, or an errno value; EAGAIN: its size is no longer `size`.
int copy_bytes(int from, int to, uint64_t size) {
  static thread_local std::unique_ptr<char[]> buffer(new char[kBuffer]);
  uint64_t done = 0;
  for (;;) {
    const ssize_t got = read(from, buffer.get(), kBuffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return done == size ? 0 : EAGAIN;
    done += static_cast<uint64_t>(got);
    if (done > size) return EAGAIN;
    const int error = write_fully(to, buffer.get(), static_cast<size_t>(got));
    if (error != 0) return error;
  }
}

UniqueFd open_original(const UniqueFd& place) {
  const std::string path = proc_path(place.get());
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(open(path.c_str(), kFlags | O_NOATIME));
  if (!fd && errno == EPERM) fd.reset(open(path.c_str(), kFlags));  // not the owner
  return fd;
}

// Whether the open file is as it was when `stat` was taken, as far as the kernel knows.
bool is_unchanged(int fd, const StageStat& stat) {
  StageStat now;
  return stat_of(fd, 0, &now) && same(stat, now);
}

PackKey key_of(const std::string& path, const StageStat& stat) { return {path, 0, stat.size}; }

// Whether a pack had the file's present version, by attributes forced from storage, and all of it
// was copied to `to`. If not, `to` may hold part of the data.
bool copy_from_pack(const std::string& path, const UniqueFd& place, const StageStat& stat,
                    const protocol::PackVersion& version, const CopyRules& rules,
                    const UniqueFd& to) {
  PackStore* const packs = rules.packs.get();
  PackStore::Found found;
  {
    const DiskReads::Reading reading(rules.reads.get(), rules.fetch);
    found = packs->find(key_of(path, stat), version);
  }
  StageStat now;
  if (!found || !stat_of(place.get(), AT_STATX_FORCE_SYNC, &now) || !same(stat, now)) return false;
  const DiskReads::Reading reading(rules.reads.get(), rules.fetch);
  const int error = packs->copy(found, to.get());
  if (error == 0) return true;
  if (error == EBADMSG) packs->damaged(found);
  return false;
}

// The same of the log.
bool copy_from_log(const UniqueFd& place, const CopyRules& rules, const UniqueFd& to,
                   CopyResult* result) {
  const std::shared_ptr<const LoggedCopy>& logged = rules.logged;
  StageStat now;
  if (logged == nullptr || logged->entry.version != version_in_run(result->stat) ||
      !stat_of(place.get(), AT_STATX_FORCE_SYNC, &now) || !same(result->stat, now)) {
    return false;
  }
  const DiskReads::Reading reading(rules.reads.get(), rules.fetch);
  const int error = copy_logged(*logged, to.get());
  if (error == EBADMSG || error == EIO) result->damaged = logged;
  return error == 0;
}

// Without what an attempt that failed has written to it. False: there is no copy, see errno.
bool make_empty(int folder, UniqueFd* copy) {
  if (lseek(copy->get(), 0, SEEK_CUR) != 0) *copy = new_copy(folder);
  return static_cast<bool>(*copy);
}

// Copies the file's bytes into `to` from the original.
CopyResult copy_original(const std::string& path, const UniqueFd& place, const UniqueFd& to,
                         const CopyResult& before) {
  const UniqueFd original = open_original(place);
  if (!original) return not_copied(errno, path);
  const std::vector<Range> ours = uncached_parts(original.get(), before.stat.size, false);
  const int error = copy_bytes(original.get(), to.get(), before.stat.size);
  if (error != 0 && error != EAGAIN) return not_copied(error, path);
  StageStat after;
  if (error == 0 && !stat_of(original.get(), 0, &after)) return not_copied(errno, path);
  // The copy makes the original's pages redundant. Drops only pages that were not cached before,
  // and none if another process may have read the file meanwhile and may read it again.
  const bool read_by_others = error != 0 || after.accessed_s != before.stat.accessed_s ||
                              after.accessed_ns != before.stat.accessed_ns;
  for (const Range& range : ours) {
    if (read_by_others) break;
    posix_fadvise(original.get(), static_cast<off_t>(range.begin),
                  static_cast<off_t>(range.length()), POSIX_FADV_DONTNEED);
  }
  if (error == EAGAIN || !same(before.stat, after)) {
    return not_copied(Failure::kError, path + ": changed while it was copied");
  }
  CopyResult result = before;
  result.good = true;
  return result;
}

// Reads a range into the page cache. 0, also if the file ends before, or an errno value.
int read_range(int fd, const Range& range) {
  static thread_local std::unique_ptr<char[]> buffer(new char[kBuffer]);
  for (uint64_t at = range.begin; at < range.end;) {
    const ssize_t got = pread(fd, buffer.get(), std::min<uint64_t>(kBuffer, range.end - at),
                              static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    at += static_cast<uint64_t>(got);
  }
  return 0;
}

// False where an open empties the file's page cache (FUSE without keep_cache), or this is unknown.
bool stays_when_opened(const UniqueFd& place, const UniqueFd& original, uint64_t size) {
  uint64_t before = 0;
  uint64_t after = 0;
  const Range whole{0, size};
  if (!cached_exactly(original.get(), whole, false, &before) || before == 0) return false;
  const UniqueFd again = open_original(place);
  return again && cached_exactly(again.get(), whole, false, &after) && after >= before;
}

}  // namespace

CopyResult copy_in(const std::string& path, int folder, uint64_t name, const CopyRules& rules,
                   CopyToPack* to_pack) {
  if (rules.chunk != nullptr) {
    CopyResult chunked = copy_from_chunk(path, folder, name, rules);
    if (chunked.good) return chunked;
  }
  UniqueFd place;
  StageMount mount;
  CopyResult result = examine(path, rules, &place, &mount);
  if (!result.good) return result;
  result.good = false;

  UniqueFd copy = new_copy(folder);
  if (!copy) return not_copied(errno, "the stage");
  std::optional<protocol::PackVersion> version;
  if (rules.packs != nullptr && result.stat.size > 0 &&
      result.stat.size <= PackStore::kMostSample) {
    version = pack_version(result.stat, mount);
  }
  result.logged = copy_from_log(place, rules, copy, &result);
  if (!result.logged && !make_empty(folder, &copy)) return not_copied(errno, "the stage");
  result.packed =
      !result.logged && version && copy_from_pack(path, place, result.stat, *version, rules, copy);
  if (!result.packed && !result.logged) {
    if (!make_empty(folder, &copy)) return not_copied(errno, "the stage");
    result = copy_original(path, place, copy, result);
    if (!result.good) return result;
  }
  if (!publish_copy(copy, folder, name, &result)) return not_copied(errno, "the stage");
  if (to_pack != nullptr && version && !result.packed && is_settled(result.stat)) {
    *to_pack = {std::move(copy), result.stat.size, *version};
  }
  return result;
}

CopyResult read_ahead(const std::string& path, const CopyRules& rules,
                      const std::set<uint64_t>& surviving, unsigned wanted, OpenedFile* opened) {
  const uint64_t begun_ns = now_ns();
  UniqueFd place;
  StageMount mount;
  CopyResult result = examine(path, rules, &place, &mount);
  if (!result.good) return result;
  const uint64_t began_ns = now_ns();
  UniqueFd original = open_original(place);
  if (!original) return not_copied(errno, path);
  const uint64_t took_ns = now_ns() - began_ns;
  const uint64_t size = result.stat.size;
  uint64_t cached = 0;
  if (!cached_exactly(original.get(), {0, size}, false, &cached)) {
    return not_copied(Failure::kMount, path + ": what is cached of it cannot be known");
  }
  result.cached = cached >= size;
  if (!result.cached) {
    if (const int error = read_range(original.get(), {0, size})) return not_copied(error, path);
  }
  if (!surviving.contains(result.stat.device) && size > 0 &&
      !stays_when_opened(place, original, size)) {
    return not_copied(Failure::kMount, path + ": its mount empties its cache when it is opened");
  }
  result.charged = FileTable::charge(size);
  if (wanted != 0) {
    std::vector<UniqueFd> more;
    while (more.size() + 1 < wanted) {
      UniqueFd one = open_original(place);
      if (!one) break;
      more.push_back(std::move(one));
    }
    *opened = {std::move(original),
               std::move(more),
               {result.stat.device, result.stat.inode,
                in_ns(static_cast<int64_t>(result.stat.changed_s), result.stat.changed_ns)},
               began_ns,
               took_ns};
    opened->clear_flags();
  }
  result.time = {begun_ns, now_ns() - begun_ns};
  return result;
}

bool copy_cached(const std::string& path, const CopyRules& rules, UniqueFd* copy, StageStat* stat) {
  UniqueFd place;
  StageMount mount;
  const CopyResult about = examine(path, rules, &place, &mount);
  if (!about.good || about.stat.size == 0) return false;
  const UniqueFd original = open_original(place);
  const uint64_t size = about.stat.size;
  uint64_t cached = 0;
  if (!original || !cached_exactly(original.get(), {0, size}, false, &cached) || cached < size) {
    return false;
  }
  UniqueFd memory(memfd_create("sluice-cached", MFD_CLOEXEC));
  if (!memory || copy_bytes(original.get(), memory.get(), size) != 0 ||
      !is_unchanged(original.get(), about.stat)) {
    return false;
  }
  *copy = std::move(memory);
  *stat = about.stat;
  return true;
}

void pack_copy(const std::string& path, const CopyToPack& copy, PackStore* packs) {
  packs->add({path, 0, copy.bytes}, copy.version, copy.fd.get());
}

CopyResult recheck(const std::string& path, const StageStat& stat) {
  CopyResult result;
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place || !stat_of(place.get(), AT_STATX_FORCE_SYNC, &result.stat)) {
    return not_copied(Failure::kChanged);
  }
  if (!same(result.stat, stat)) return not_copied(Failure::kChanged);
  result.good = true;
  return result;
}

}  // namespace sluice::optimizer
