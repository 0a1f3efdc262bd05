// A rule for what all samples of a dataset consist of, guessed from a few observed ones: the input
// and the result of the methods of guessing (key_guess.h, row_guess.h,
// ordered_rows.h). Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/samples/sample_set.h"

namespace sluice::policy {

// An observed sample, and all that was read of the file for it, in the order of reading. Empty: the
// sample was read, but nothing of the file.
struct Observation {
  uint64_t index = 0;
  std::vector<Extent> parts;
};

// How observations match predictions. `exact`: an observed part is the record itself; otherwise it
// may extend beyond it on both sides, and parts that begin below `header` count as nothing.
// `finer`: the prediction is more precise than the observations. `wider`: what is predicted may
// extend beyond the record; an observation that has half of it agrees. `partial`: for some samples
// more observations would give a prediction.
struct GuessMatch {
  bool exact = true;
  bool finer = false;
  bool wider = false;
  bool partial = false;
  uint64_t header = 0;
};

// Extents of all samples: 16 bytes for each record of a sample.
class SampleGuess {
 public:
  SampleGuess(std::string name, size_t records_each, std::vector<Extent> extents,
              GuessMatch match = {})
      : name_(std::move(name)), each_(records_each), extents_(std::move(extents)), match_(match) {}

  // For the log, one line.
  const std::string& name() const { return name_; }
  // Whole values, in the order in which a sample's records are read. Empty: one of the sample's
  // records is missing or empty.
  std::span<const Extent> parts(uint64_t index) const;
  // No sample from here on has parts.
  uint64_t samples() const { return extents_.size() / each_; }
  // What is predicted for the sample is among what was read for it. A guess that contradicts a
  // later observation is wrong for all samples.
  bool agrees(const Observation& seen) const;
  bool is_finer() const { return match_.finer; }
  bool is_partial() const { return match_.partial; }

 private:
  std::string name_;
  size_t each_;
  std::vector<Extent> extents_;  // `each_` per sample; if the first has no file: none
  GuessMatch match_;
};

struct Guessing {
  enum class State : uint8_t {
    kGuessed,
    kWait,  // more observations may decide: too few, or hypotheses that differ
    kNone,  // no hypothesis explains all observations
  };
  State state = State::kNone;
  std::optional<SampleGuess> guess;  // kGuessed
};

// Different samples with the same number of parts that must have been observed.
inline constexpr size_t kEnoughSeen = 8;
// Datasets with more samples, and samples of more records, are not guessed.
inline constexpr uint64_t kMostGuessed = 1ULL << 24;
inline constexpr size_t kMostRecordsEach = 4;

}  // namespace sluice::policy
