// Whether a dataset's samples are read from the copies that are made for them. Some jobs cannot be
// given any: what maps, locks or passes on a file, keeps it beyond its window, or opens it in
// another thread or process gets the original (docs/stage.md). Then a copy only costs the storage
// its bytes twice, and the originals themselves are to be read ahead.
//
// Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace sluice::optimizer {

class Uptake {
 public:
  // A thread began a sample at `time_ns`. `offered`: copies of all that it is made of were there.
  // `reader` as SampleBook has it.
  void begun(uint64_t reader, uint32_t dataset, uint64_t index, bool offered, uint64_t time_ns);

  // What the thread says at the sample's end.
  struct End {
    uint64_t given = 0;       // copies since the end before
    uint64_t left = 0;        // of those that it had, given back for the originals since
    uint64_t time_ns = 0;     // of the clock of begun()
    uint64_t storage_ns = 0;  // what its storage takes to give the sample alone; 0: not known
  };
  enum class Verdict : uint8_t { kNothing, kUsed, kOriginal };
  // kOriginal: copies that were there were of no use to this sample.
  Verdict ended(uint64_t reader, uint32_t dataset, uint64_t index, const End& end);

  // Nearly all of its copies of late were of no use. Until it is forgotten.
  bool needs_originals(uint32_t dataset) const;
  void forget(uint32_t dataset) { counts_.erase(dataset); }

  static constexpr uint64_t kEnough = 64;  // copies, for a verdict on a dataset
  static constexpr uint64_t kOfLate = 8 * kEnough;
  static constexpr uint64_t kUsedShare = 8;       // less than one in so many was of use
  static constexpr uint64_t kMostCounted = 4096;  // copies that one end can tell of
  static constexpr size_t kMostOpen = 4096;       // samples being read; of more nothing is known

 private:
  struct Open {
    uint32_t dataset = 0;
    uint64_t index = 0, begun_ns = 0;
    bool offered = false;
  };
  struct Counts {
    uint64_t offered = 0;   // copies that the job was given, or went past
    uint64_t original = 0;  // of them, those that it read from the original
    bool originals = false;
  };

  void count(Counts& counts, uint64_t offered, uint64_t original);

  std::unordered_map<uint64_t, Open> open_;  // by reader: the last that it began
  std::unordered_map<uint32_t, Counts> counts_;
};

}  // namespace sluice::optimizer
