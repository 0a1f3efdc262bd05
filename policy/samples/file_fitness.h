// Which files are not sample files although a job opened them while it read a sample: containers of
// many samples, and files that are used in a way that a copy does not support. Decided by their
// use; a file without a reported use may be a sample. Pure; one thread. Memory only for files with
// a reported use.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "policy/util/ids.h"
#include "protocol/control.h"

namespace sluice::policy {

class FileFitness {
 public:
  // The job used the file in this way. True: that made the file unfit.
  bool note(SampleFileId file, protocol::FileUse use);
  bool unfit(SampleFileId file) const {
    if (uses_.empty()) return false;
    const auto at = uses_.find(file);
    return at != uses_.end() && is_unfit(at->second);
  }
  // The file is unfit only because it is locked: a sample file that no copy can replace.
  bool only_locked(SampleFileId file) const;
  // Files that are unfit.
  uint64_t count() const { return unfit_; }

  static constexpr size_t kMost = 1 << 20;  // files; beyond that nothing is recorded

 private:
  static bool is_unfit(uint32_t uses);

  std::unordered_map<SampleFileId, uint32_t> uses_;  // FileUses by file
  uint64_t unfit_ = 0;
};

}  // namespace sluice::policy
