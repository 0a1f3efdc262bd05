#include "policy/samples/chunk_guess.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {

namespace {

// What was read for a sample may extend beyond its chunk: neighbours, or nodes of the index.
constexpr GuessMatch kMatch = {.exact = false};

std::vector<Extent> extents_of(std::span<const RowChunks* const> datasets, FileId file,
                               uint64_t samples) {
  std::vector<Extent> out;
  out.reserve(samples * datasets.size());
  for (uint64_t sample = 0; sample < samples; ++sample) {
    for (const RowChunks* dataset : datasets) {
      const uint64_t number = sample / dataset->rows_each;
      const bool there = number < dataset->chunks.size() && dataset->chunks[number].length != 0;
      out.push_back(
          there ? Extent{dataset->chunks[number].offset, dataset->chunks[number].length, file}
                : Extent{});
    }
  }
  return out;
}

SampleGuess guess_of(std::span<const RowChunks* const> datasets, FileId file, uint64_t samples) {
  return {"chunks of its row", datasets.size(), extents_of(datasets, file, samples), kMatch};
}

}  // namespace

Guessing guess_chunks(std::span<const RowChunks> datasets, FileId file, uint64_t samples,
                      std::span<const Observation> seen) {
  if (seen.size() < kEnoughSeen) return {Guessing::State::kWait, std::nullopt};
  std::vector<const RowChunks*> right;
  for (const RowChunks& dataset : datasets) {
    const RowChunks* const one[] = {&dataset};
    const SampleGuess guess = guess_of(one, file, samples);
    const bool agrees = std::all_of(seen.begin(), seen.end(), [&](const Observation& observed) {
      return !guess.parts(observed.index).empty() && guess.agrees(observed);
    });
    if (agrees && right.size() < kMostRecordsEach) right.push_back(&dataset);
  }
  if (right.empty()) return {Guessing::State::kNone, std::nullopt};
  return {Guessing::State::kGuessed, guess_of(right, file, samples)};
}

}  // namespace sluice::policy
