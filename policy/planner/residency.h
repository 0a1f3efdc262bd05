// What the page cache holds, and which files will become readable: what planning asks of its
// surroundings. One thread.
#pragma once

#include <cstdint>

#include "policy/util/ids.h"
#include "policy/util/interval_set.h"

namespace sluice::policy {

class Residency {
 public:
  Residency() = default;
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;
  virtual ~Residency() = default;
  // Bytes of `range` that are cached; 0 if that is not known.
  virtual uint64_t cached(FileId file, Range range) = 0;
  // False if residency cannot be known: the kernel reveals it only to a file's owner or to a
  // process that may write the file.
  virtual bool known(FileId file) const = 0;
  // Residency is known for each page, and without reading any.
  virtual bool exact(FileId file) const { return known(file); }
  // The file is being opened, and becomes readable unless that fails.
  virtual bool awaited(FileId /*file*/) const { return false; }
};

// How many bytes from the begin of `piece` are cached; 0: some of the piece must be read. The file
// will be read on to `end`, so that more than the piece is asked for at once. No page before
// *probed was cached when it was asked for last; updated.
uint64_t cached_at(Residency& residency, FileId file, Range piece, uint64_t end, uint64_t* probed);

}  // namespace sluice::policy
