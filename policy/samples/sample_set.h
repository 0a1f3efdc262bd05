// What the samples of one dataset are made of: extents of files, learned by watching a sample being
// read, or whole files, as the job said. Pure; one thread. Memory goes with the samples that are
// known, not with their numbers: about 18 bytes for one of many neighbours of one piece each, about
// 150 for one that is far from all others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
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
  uint64_t known() const { return known_; }  // samples with extents
  uint64_t reach() const { return reach_; }  // of samples from here on nothing is known
  uint64_t held() const { return held_; }    // bytes of memory that the tables take, about
  // The sample consists of `parts` from now on, unless more is known of it: what was seen makes way
  // for what is seen later alone, what was kept or told for that and for what is told later, and a
  // guess is for samples of which nothing is known. Too many parts (more than kMaxParts) are as
  // good as none: such a sample is no use to plan with.
  void learn(uint64_t index, std::vector<Extent> parts, Source source = Source::kSeen);
  // Empty: not known. Good until something is learned of any sample.
  std::span<const Extent> parts(uint64_t index) const;
  Source source(uint64_t index) const;  // REQUIRES: it is known
  // All samples that are known, by ascending number, until `visit` returns false. `visit` changes
  // nothing here.
  void for_each_known(const std::function<bool(uint64_t index)>& visit) const;
  uint64_t bytes(uint64_t index) const;
  // Samples that were seen to be made of something else than was known before, or seen first.
  uint64_t news() const { return news_; }
  // What was seen contains these parts, which a guess makes of it.
  void refine(uint64_t index, std::vector<Extent> parts);
  void forget_guesses();
  void clear();  // nothing is known of any sample
  static constexpr size_t kMaxParts = 64;

 private:
  static constexpr uint32_t kMany = UINT32_MAX;  // Extent::file: its parts are in many_
  static constexpr uint64_t kBlockSamples = 64;

  // Neighbours, [64 * b, 64 * b + 64): those that are known, packed.
  struct Block {
    uint64_t known = 0;                // a bit for each
    std::array<uint64_t, 2> source{};  // the lower and the upper bit of each one's Source
    std::vector<Extent> extents;       // of those that are known, in their order
    size_t place(uint64_t bit) const;  // in `extents`
  };

  const Extent* find(uint64_t index) const;  // nullptr: not known
  bool overrides(uint64_t index, const std::vector<Extent>& parts, Source source);
  void set(uint64_t index, std::vector<Extent> parts);
  void set_source(uint64_t index, Source source);
  void forget(uint64_t index);

  const uint64_t samples_;
  uint64_t known_ = 0, news_ = 0, reach_ = 0, held_ = 0;
  std::unordered_map<uint64_t, Block> blocks_;
  std::unordered_map<uint64_t, std::vector<Extent>> many_;
};

}  // namespace sluice::optimizer
