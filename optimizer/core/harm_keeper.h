// Times the samples of each dataset and decides by the harm watch (harm_watch.h) which of the
// dataset's mechanisms is put on trial or switched off. Core thread only.
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
  // kServed: the sample's bytes were in memory or being fetched when the sample was begun.
  enum class How : uint8_t { kNative, kServed };

  struct Begin {
    Mechanism by{};
    How how{};
    uint64_t time_ns = 0;      // by the clock of the job's thread, monotonic
    uint64_t expected_ns = 0;  // time its storage takes for this sample alone; 0: unknown
  };
  struct Finding {
    Mechanism mechanism{};
    HarmWatch::Verdict verdict{};
  };
  // A thread began a sample, and ended it at `time_ns` of the same clock. `reader` is as in
  // SampleBook. ended() returns nullopt if no mechanism's state changes.
  void begun(uint64_t reader, uint32_t dataset, uint64_t index, const Begin& begin);
  std::optional<Finding> ended(uint64_t reader, uint32_t dataset, uint64_t index, uint64_t time_ns);
  // Copies for the dataset that took the storage `ns` to fetch will not be read; nullopt as above.
  std::optional<Finding> wasted(uint32_t dataset, uint64_t ns, uint64_t now_ns);
  // Whether it is on. May begin a new trial of a mechanism whose time off is over.
  bool on(uint32_t dataset, Mechanism mechanism, uint64_t now_ns) {
    return watches_[dataset][static_cast<size_t>(mechanism)].on(now_ns);
  }
  bool in_trial(uint32_t dataset, Mechanism mechanism) const {
    const HarmWatch* watch = find(dataset, mechanism);
    return watch != nullptr && watch->in_trial();
  }
  const HarmWatch* find(uint32_t dataset, Mechanism mechanism) const;
  // Datasets with a mechanism that is off, for which a new trial may be due.
  std::vector<uint32_t> off() const;
  void forget(uint32_t dataset) { watches_.erase(dataset); }

  static constexpr size_t kMostOpen = 4096;  // samples being read; a full table is cleared

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

  std::unordered_map<uint64_t, Open> open_;  // by reader: its last begun sample
  std::map<uint32_t, Pair> watches_;         // by dataset
};

}  // namespace sluice::optimizer
