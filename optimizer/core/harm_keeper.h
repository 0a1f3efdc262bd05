// The watch on harm at work: times the samples of each dataset, and tells which of its mechanisms
// is to be off. Core thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "optimizer/plan/harm_watch.h"

namespace sluice::optimizer {

class HarmKeeper {
 public:
  enum class Mechanism : uint8_t { kRecords = 0, kCopies = 1 };
  // Served: its bytes were in memory, or on their way, when it was begun.
  enum class How : uint8_t { kNative, kServed };

  // A thread began a sample at `time_ns`, and ended it; that of its own clock, monotonic. `reader`
  // as SampleBook has it. What ended() returns is to be switched off now.
  void begun(uint64_t reader, uint32_t dataset, uint64_t index, Mechanism by, How how,
             uint64_t time_ns);
  std::optional<Mechanism> ended(uint64_t reader, uint32_t dataset, uint64_t index,
                                 uint64_t time_ns);
  // Nobody read what was fetched for the dataset. True: copies are to be switched off now.
  bool wasted(uint32_t dataset, uint64_t ns, uint64_t now_ns);
  // Whether it is on; what was off may be tried again by now.
  bool on(uint32_t dataset, Mechanism mechanism, uint64_t now_ns) {
    return watches_[dataset][static_cast<size_t>(mechanism)].on(now_ns);
  }
  const HarmWatch* find(uint32_t dataset, Mechanism mechanism) const;
  void forget(uint32_t dataset) { watches_.erase(dataset); }

  static constexpr size_t kMostOpen = 4096;  // samples being read; of more nothing is timed

 private:
  struct Open {
    uint32_t dataset = 0;
    uint64_t index = 0, begun_ns = 0;
    Mechanism by{};
    How how{};
  };
  struct Pair {
    HarmWatch watches[2];
    HarmWatch& operator[](size_t i) { return watches[i]; }
  };

  std::unordered_map<uint64_t, Open> open_;  // by reader: the last that it began
  std::map<uint32_t, Pair> watches_;         // by dataset
};

}  // namespace sluice::optimizer
