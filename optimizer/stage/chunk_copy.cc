#include "optimizer/stage/chunk_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "optimizer/io/clock.h"
#include "optimizer/stage/copy_parts.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

using policy::StagePlan;
using protocol::PackEntry;
namespace {

using Failure = StagePlan::Failure;

// What the original is, if it is what was packed: as it was found lately, or as it is.
CopyResult original_of(const std::string& path, const CopyRules& rules, const PackEntry& member) {
  const ChunkedCopy& chunk = *rules.chunk;
  const uint64_t now = now_ns();
  CopyResult result;
  if (const auto checked =
          chunk.store->checked(chunk.place, member, now - std::min(now, chunk.stale_ns))) {
    result.stat = checked->stat;
    result.validated_ns = checked->at_ns;
    result.good = result.stat.size <= rules.most_bytes;
    return result;
  }
  UniqueFd place;
  StageMount mount;
  result = examine(path, rules, &place, &mount);
  if (!result.good) return result;
  result.validated_ns = now;
  const int sync = chunk.stale_ns < kCachedAttributesNs ? AT_STATX_FORCE_SYNC : 0;
  // A link may lead elsewhere, unseen: it takes the ordinary way.
  result.good = (result.flags & protocol::kStageLink) == 0 &&
                stat_of(place.get(), sync, &result.stat) &&
                chunk.store->check(chunk.place, result.stat, now);
  return result;
}

}  // namespace

CopyResult copy_from_chunk(const std::string& path, int folder, uint64_t name,
                           const CopyRules& rules) {
  const PackEntry* member = nullptr;
  {
    const DiskReads::Reading reading(rules.reads.get(), rules.fetch);
    member = rules.chunk->read->member(rules.chunk->place.entry, path);
  }
  if (member == nullptr) return not_copied(Failure::kError);
  CopyResult result = original_of(path, rules, *member);
  if (!result.good) return result;
  result.good = false;
  const UniqueFd copy = new_copy(folder);
  if (!copy) return not_copied(errno, "the stage");
  const int error = rules.chunk->read->copy(*member, copy.get());
  if (error != 0) return not_copied(error, error == EBADMSG ? path : "the stage");
  if (!publish_copy(copy, folder, name, &result)) return not_copied(errno, "the stage");
  result.chunked = true;
  return result;
}

void check_folder(const std::string& folder, bool any_mount, ChunkStore* store) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(folder.c_str()), closedir);
  protocol::StageStat stat;
  if (listing == nullptr || !stat_of(dirfd(listing.get()), 0, &stat)) return;
  if (!any_mount && stage_mount(dirfd(listing.get()), stat.device).local) return;
  const uint64_t device = stat.device;
  const std::string prefix = folder + "/";
  while (const dirent* entry = readdir(listing.get())) {
    const auto place = store->find(prefix + entry->d_name);
    const uint64_t now = now_ns();
    // Not what is mounted over a file: its mount may be another one.
    if (place && stat_at(dirfd(listing.get()), entry->d_name, AT_SYMLINK_NOFOLLOW, &stat) &&
        S_ISREG(stat.mode) && stat.device == device) {
      store->check(*place, stat, now);
    }
  }
}

}  // namespace sluice::optimizer
