#include "policy/samples/file_fitness.h"

namespace sluice::policy {
namespace {

using protocol::FileUse;

constexpr uint32_t bit(FileUse use) { return static_cast<uint32_t>(use); }

// One such use is enough: a sample file is never used like that.
constexpr uint32_t kNever = bit(FileUse::kShared) | bit(FileUse::kLocked) | bit(FileUse::kMapped);
constexpr uint32_t kKnown = kNever | bit(FileUse::kReadInPart) | bit(FileUse::kReadWhole);

}  // namespace

// A job that reads the header first, and opens the file again to read it, reads all of it.
bool FileFitness::is_unfit(uint32_t uses) {
  if ((uses & kNever) != 0) return true;
  return (uses & bit(FileUse::kReadInPart)) != 0 && (uses & bit(FileUse::kReadWhole)) == 0;
}

bool FileFitness::note(SampleFileId file, FileUse use) {
  if ((bit(use) & ~kKnown) != 0) return false;
  auto at = uses_.find(file);
  if (at == uses_.end()) {
    if (uses_.size() >= kMost) return false;
    at = uses_.emplace(file, 0).first;
  }
  const bool before = is_unfit(at->second);
  at->second |= bit(use);
  const bool now = is_unfit(at->second);
  unfit_ += now && !before ? 1 : 0;
  unfit_ -= before && !now ? 1 : 0;
  return now && !before;
}

bool FileFitness::only_locked(SampleFileId file) const {
  const auto at = uses_.find(file);
  return at != uses_.end() && at->second == bit(FileUse::kLocked);
}

}  // namespace sluice::policy
