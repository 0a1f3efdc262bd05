#include "policy/planner/uptake.h"

#include <algorithm>

namespace sluice::policy {
namespace {

// A sample that took less than this fraction of its storage time was not read from storage: a job
// that begins and ends samples without opening a file needs no originals.
constexpr uint64_t kStorageShare = 2;

}  // namespace

void Uptake::begun(uint64_t reader, DatasetId dataset, uint64_t index, bool offered,
                   uint64_t time_ns) {
  if (open_.size() >= kMostOpen && open_.count(reader) == 0) open_.clear();
  const bool alone = open_.count(reader) == 0;
  open_[reader] = {dataset, index, time_ns, offered, alone};
}

Uptake::Verdict Uptake::ended(uint64_t reader, DatasetId dataset, uint64_t index, const End& end) {
  const auto at = open_.find(reader);
  const bool known =
      at != open_.end() && at->second.dataset == dataset && at->second.index == index;
  const bool offered = known && at->second.offered && at->second.alone;
  const uint64_t begun_ns = known ? at->second.begun_ns : end.time_ns;
  if (known) open_.erase(at);
  const uint64_t given = std::min(end.given, kMostCounted);
  const uint64_t left = std::min(end.left, kMostCounted);
  if (given != 0 || left != 0) {  // a copy exchanged now may have been given long before
    count(counts_[dataset], given, left);
    return left != 0 ? Verdict::kOriginal : Verdict::kUsed;
  }
  const uint64_t took = end.time_ns - std::min(end.time_ns, begun_ns);
  if (!offered || end.storage_ns == 0 || took < end.storage_ns / kStorageShare) {
    return Verdict::kNothing;
  }
  count(counts_[dataset], 1, 1);
  return Verdict::kOriginal;
}

void Uptake::count(Counts& counts, uint64_t offered, uint64_t original) {
  counts.offered += offered;
  counts.original += original;
  const uint64_t used = counts.offered - std::min(counts.offered, counts.original);
  counts.originals |= counts.offered >= kEnough && used < counts.offered / kUsedShare;
  if (counts.offered < kOfLate) return;
  counts.offered /= 2;
  counts.original /= 2;
}

bool Uptake::needs_originals(DatasetId dataset) const {
  const auto at = counts_.find(dataset);
  return at != counts_.end() && at->second.originals;
}

}  // namespace sluice::policy
