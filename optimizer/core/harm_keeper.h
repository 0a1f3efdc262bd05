// The watch on harm at work: times the samples of each dataset, and finds which of its mechanisms
// is to be on trial, or off (harm_watch.h). Core thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policy/planner/harm_watch.h"

namespace sluice::optimizer {

class HarmKeeper {
 public:
  enum class Mechanism : uint8_t { kRecords = 0, kCopies = 1 };
  // Served: its bytes were in memory, or on their way, when it was begun.
  enum class How : uint8_t { kNative, kServed };

  struct Begin {
    Mechanism by{};
    How how{};
    uint64_t time_ns = 0;      // of the thread's own clock, monotonic
    uint64_t expected_ns = 0;  // what its storage takes for the sample alone; 0: not known
  };
  struct Finding {
    Mechanism mechanism{};
    HarmWatch::Verdict verdict{};
  };
  // A thread began a sample, and ended it at `time_ns` of the same clock. `reader` as SampleBook
  // has it. nullopt from ended(): all stays as it is.
  void begun(uint64_t reader, uint32_t dataset, uint64_t index, const Begin& begin);
  std::optional<Finding> ended(uint64_t reader, uint32_t dataset, uint64_t index, uint64_t time_ns);
  // Copies that were fetched for the dataset will not be read; nullopt as above.
  std::optional<Finding> wasted(uint32_t dataset, uint64_t ns, uint64_t now_ns);
  // Whether it is on; what was off may be tried again by now.
  bool on(uint32_t dataset, Mechanism mechanism, uint64_t now_ns) {
    return watches_[dataset][static_cast<size_t>(mechanism)].on(now_ns);
  }
  bool in_trial(uint32_t dataset, Mechanism mechanism) const {
    const HarmWatch* watch = find(dataset, mechanism);
    return watch != nullptr && watch->in_trial();
  }
  const HarmWatch* find(uint32_t dataset, Mechanism mechanism) const;
  // Datasets of which a mechanism is off, and may be tried again by now.
  std::vector<uint32_t> off() const;
  void forget(uint32_t dataset) { watches_.erase(dataset); }

  static constexpr size_t kMostOpen = 4096;  // samples being read; of more nothing is timed

 private:
  struct Open {
    uint32_t dataset = 0;
    uint64_t index = 0;
    Begin begin;
  };
  struct Pair {
    HarmWatch watches[2];
    HarmWatch& operator[](size_t i) { return watches[i]; }
  };

  std::unordered_map<uint64_t, Open> open_;  // by reader: the last that it began
  std::map<uint32_t, Pair> watches_;         // by dataset
};

}  // namespace sluice::optimizer
