// Times the samples of each dataset, decides by the harm watch (harm_watch.h) which of the
// dataset's mechanisms is put on trial or switched off, and carries that out. A dataset that a log
// follows (services/stage/copy_log.h) is not judged: the log was asked for by name, and what it
// costs while it is filled comes back with the next epoch. Core thread only.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "optimizer/services/service.h"
#include "policy/planner/harm_watch.h"
#include "policy/util/ids.h"

namespace sluice::optimizer {

class HarmControl : Service {
 public:
  enum class Mechanism : uint8_t { kRecords = 0, kCopies = 1 };
  // kPrefetched: the sample's bytes were in memory or being fetched when the sample was begun.
  enum class Kind : uint8_t { kNative, kPrefetched };

  struct Begin {
    Mechanism by{};
    Kind kind{};
    uint64_t time_ns = 0;      // by the clock of the job's thread, monotonic
    uint64_t expected_ns = 0;  // time its storage takes for this sample alone; 0: unknown
  };

  explicit HarmControl(const Service& service) : Service(service) {}

  // A thread began a sample, and ended it at `time_ns` of the same clock. `reader` is as in
  // SampleBook.
  void begun(uint64_t reader, policy::DatasetId dataset, uint64_t index, const Begin& begin);
  void ended(uint64_t reader, policy::DatasetId dataset, uint64_t index, uint64_t time_ns);
  // Several times a second: counts copies that will not be read, and begins new trials.
  void tick(uint64_t now_ns);
  bool in_trial(policy::DatasetId dataset, Mechanism mechanism) const;
  void remove(policy::DatasetId dataset) { watches_.erase(dataset); }

  static constexpr size_t kMostOpen = 4096;  // samples being read; a full table is cleared

 private:
  struct Open {
    policy::DatasetId dataset{};
    uint64_t index = 0;
    Begin begin;
    bool alone = true;  // not one of a batch that is read with one call
  };
  struct Pair {
    policy::HarmWatch watches[2];
    policy::HarmWatch& of(Mechanism mechanism) { return watches[static_cast<size_t>(mechanism)]; }
  };

  const policy::HarmWatch* find(policy::DatasetId dataset, Mechanism mechanism) const;
  void on_verdict(policy::DatasetId dataset, Mechanism mechanism,
                  policy::HarmWatch::Verdict verdict, uint64_t now_ns);
  void drop_control_copies(policy::DatasetId dataset);
  void switch_off(policy::DatasetId dataset, Mechanism mechanism);
  void apply(policy::DatasetId dataset, Mechanism mechanism, uint64_t now_ns);

  std::unordered_map<uint64_t, Open> open_;    // by reader: its last begun sample
  std::map<policy::DatasetId, Pair> watches_;  // by dataset
};

}  // namespace sluice::optimizer
