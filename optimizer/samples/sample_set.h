// What the samples of one dataset are made of: extents of files, learned by watching a sample being
// read, or whole files, as the job said. Pure; one thread. 17 bytes a sample where it is of one
// piece, which nearly all are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace sluice::optimizer {

// [offset, offset + length) of a followed file, bytes.
struct Extent {
  uint64_t offset = 0;
  uint32_t length = 0;
  uint32_t file = 0;  // 0: none
  bool operator==(const Extent&) const = default;
};
static_assert(sizeof(Extent) == 16);

inline bool contains(const Extent& outer, const Extent& inner) {
  return outer.file == inner.file && outer.offset <= inner.offset &&
         outer.offset + outer.length >= inner.offset + inner.length;
}

// Joins neighbours of the same file; keeps the order otherwise.
void merge_neighbours(std::vector<Extent>* parts);

// The same parts as in `known`, seen by the pages that lie around them.
bool is_coarser(std::span<const Extent> seen, std::span<const Extent> known);

// How it came to be known what a sample is made of. What was seen in this run counts most.
enum class Source : uint8_t {
  kSeen,     // a worker read the sample
  kKept,     // one did in an earlier run
  kTold,     // the job said so
  kGuessed,  // it follows from what was seen of others
};

class SampleSet {
 public:
  explicit SampleSet(uint64_t samples) : samples_(samples) {}

  uint64_t samples() const { return samples_; }
  uint64_t known() const { return known_; }          // samples with extents
  uint64_t reach() const { return single_.size(); }  // of samples from here on nothing is known
  // The sample consists of `parts` from now on, unless more is known of it: what was seen makes way
  // for what is seen later alone, what was kept or told for that and for what is told later, and a
  // guess is for samples of which nothing is known. Too many parts (more than kMaxParts) are as
  // good as none: such a sample is no use to plan with.
  void learn(uint64_t index, std::vector<Extent> parts, Source source = Source::kSeen);
  // Empty: not known.
  std::span<const Extent> parts(uint64_t index) const;
  Source source(uint64_t index) const { return sources_[index]; }  // REQUIRES: it is known
  uint64_t bytes(uint64_t index) const;
  // Samples that were seen to be made of something else than was known before, or seen first.
  uint64_t news() const { return news_; }
  // What was seen contains these parts, which a guess makes of it.
  void refine(uint64_t index, std::vector<Extent> parts);
  void forget_guesses();
  static constexpr size_t kMaxParts = 64;

 private:
  static constexpr uint32_t kMany = UINT32_MAX;  // Extent::file: `offset` is a place in many_

  bool overrides(uint64_t index, const std::vector<Extent>& parts, Source source);
  void set(uint64_t index, std::vector<Extent> parts);

  const uint64_t samples_;
  uint64_t known_ = 0, news_ = 0;
  std::vector<Extent> single_;   // as long as the highest sample known
  std::vector<Source> sources_;  // as long
  std::unordered_map<uint64_t, std::vector<Extent>> many_;
};

}  // namespace sluice::optimizer
