// Whether a dataset's samples are read from their staged copies. Some jobs cannot use them: one
// that maps or locks a file, passes it on, holds it open beyond its window, or opens it in another
// thread or process gets the original (docs/stage.md). Then a copy only makes the storage deliver
// the bytes twice, and the originals themselves must be prefetched.
//
// Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "policy/util/ids.h"

namespace sluice::policy {

class Uptake {
 public:
  // A thread began a sample at `time_ns`. `offered`: copies of all its files were there. `reader`
  // as in SampleBook.
  void begun(uint64_t reader, DatasetId dataset, uint64_t index, bool offered, uint64_t time_ns);

  // What the thread reports at the sample's end.
  struct End {
    uint64_t given = 0;       // copies that it was given since its previous end
    uint64_t left = 0;        // copies that it exchanged for the originals since then
    uint64_t time_ns = 0;     // on the clock of begun()
    uint64_t storage_ns = 0;  // storage time of the sample alone; 0: not known
  };
  enum class Verdict : uint8_t { kNothing, kUsed, kOriginal };
  // kOriginal: copies existed, but were of no use to this sample. What a batch that is read with
  // one call was given counts once for all of it, with whichever sample ends first.
  Verdict ended(uint64_t reader, DatasetId dataset, uint64_t index, const End& end);

  // Nearly all of its recent copies were of no use. True until remove().
  bool needs_originals(DatasetId dataset) const;
  void remove(DatasetId dataset) { counts_.erase(dataset); }

  static constexpr uint64_t kEnough = 64;  // copies, for a verdict on a dataset
  static constexpr uint64_t kOfLate = 8 * kEnough;
  static constexpr uint64_t kUsedShare = 8;       // fewer than one used copy in so many
  static constexpr uint64_t kMostCounted = 4096;  // copies that one end can report
  static constexpr size_t kMostOpen = 4096;       // samples being read; more are not tracked

 private:
  struct Open {
    DatasetId dataset{};
    uint64_t index = 0, begun_ns = 0;
    bool offered = false;
    bool alone = true;  // not one of a batch that is read with one call
  };
  struct Counts {
    uint64_t offered = 0;   // copies that the job was given, or ignored
    uint64_t original = 0;  // of them, those whose original it read
    bool originals = false;
  };

  void count(Counts& counts, uint64_t offered, uint64_t original);

  std::unordered_map<uint64_t, Open> open_;  // by reader: the last sample that it began
  std::unordered_map<DatasetId, Counts> counts_;
};

}  // namespace sluice::policy
