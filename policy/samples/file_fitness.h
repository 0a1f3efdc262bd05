// Which files are no samples' files, whatever opened them: containers of many samples, and files
// that jobs use in a way that a copy cannot serve. Decided by how they were used; a file of which
// nothing was said may be a sample. Pure; one thread. Memory for those alone that something was
// said of.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "protocol/control.h"

namespace sluice::optimizer {

class FileFitness {
 public:
  // The job used the file like that. True: it has become unfit by this.
  bool note(uint32_t file, protocol::FileUse use);
  bool unfit(uint32_t file) const {
    if (uses_.empty()) return false;
    const auto at = uses_.find(file);
    return at != uses_.end() && is_unfit(at->second);
  }
  // It is locked, and nothing else speaks against it: a sample's file of which no copy can serve.
  bool only_locked(uint32_t file) const;
  // Files that are unfit.
  uint64_t count() const { return unfit_; }

  static constexpr size_t kMost = 1 << 20;  // files; of more nothing is remembered

 private:
  static bool is_unfit(uint32_t uses);

  std::unordered_map<uint32_t, uint32_t> uses_;  // FileUses by file
  uint64_t unfit_ = 0;
};

}  // namespace sluice::optimizer
