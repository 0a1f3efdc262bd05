// Of what all samples of a dataset over one key-value file are made, after a few have been watched:
// the usual ways to find the record of sample i are tried, and one counts only while all that was
// watched agrees with it. Pure; one thread.
//
// A sample may be of several records, always as many, each found in its own way (image-%09d and
// label-%09d), or the same one for all samples. What a job reads once, such as __len__ and the meta
// pages when it opens the file within its first sample, disturbs nobody.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/samples/record_list.h"
#include "optimizer/samples/sample_set.h"

namespace sluice::optimizer {

// A sample that was watched, and all that was read of the file for it, in the order of reading.
// merge_neighbours() takes no record away: between values a header lies, so that they never touch.
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
class KeyGuess {
 public:
  KeyGuess(std::string name, size_t records_each, std::vector<Extent> extents,
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
  std::optional<KeyGuess> guess;  // kGuessed
};

// Different samples of one shape that must have been seen.
inline constexpr size_t kEnoughSeen = 8;
// Datasets with more samples, and samples of more records, are not guessed.
inline constexpr uint64_t kMostGuessed = 1ULL << 24;
inline constexpr size_t kMostRecordsEach = 4;

// `file` is Extent::file of the parts that are this file's; there must be no others, they would
// belong to nothing. Takes some passes over the records: about 0.1 s for a million.
Guessing guess_keys(const RecordList& records, uint32_t file, uint64_t samples,
                    std::span<const Observation> seen);

}  // namespace sluice::optimizer
