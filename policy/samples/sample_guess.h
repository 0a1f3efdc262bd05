// A rule for what all samples of a dataset are made of, guessed from a few that were watched: what
// the ways to guess (key_guess.h, row_guess.h) are given, and what they answer. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "policy/samples/sample_set.h"

namespace sluice::optimizer {

// A sample that was watched, and all that was read of the file for it, in the order of reading.
// Empty: the sample was read, and nothing of the file.
struct Observation {
  uint64_t index = 0;
  std::vector<Extent> parts;
};

// What is watched of a record is the record; or may be more on both sides, and of what begins below
// `header` nothing follows. `finer`: what is watched says less of a sample than what is foretold.
struct GuessMatch {
  bool exact = true;
  bool finer = false;
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
  // Whole values, in the order in which a sample's records are read. Empty: the file has no record
  // for the sample, or not all of them, or an empty one.
  std::span<const Extent> parts(uint64_t index) const;
  // Samples at and above have no parts.
  uint64_t samples() const { return extents_.size() / each_; }
  // What is foretold of the sample is among what was read for it. A guess that does not agree with
  // a later observation is wrong for all samples.
  bool agrees(const Observation& seen) const;
  bool is_finer() const { return match_.finer; }

 private:
  std::string name_;
  size_t each_;
  std::vector<Extent> extents_;  // `each_` for every sample; the first without a file: none
  GuessMatch match_;
};

struct Guessing {
  enum class State : uint8_t {
    kGuessed,
    kWait,  // more observations may decide: too few, or two hypotheses that differ
    kNone,  // no hypothesis explains them all
  };
  State state = State::kNone;
  std::optional<SampleGuess> guess;  // kGuessed
};

// Different samples of one shape that must have been seen.
inline constexpr size_t kEnoughSeen = 8;
// Datasets with more samples, and samples of more records, are not guessed.
inline constexpr uint64_t kMostGuessed = 1ULL << 24;
inline constexpr size_t kMostRecordsEach = 4;

}  // namespace sluice::optimizer
