// What the samples of one dataset consist of: extents of files, learned from observed reads, or
// whole files, as the job declared. Pure; one thread. Memory is proportional to the number of known
// samples: about 18 bytes for one of many neighbours of one part each, about 150 for one that is
// far from all others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/samples/extent.h"
#include "policy/util/ids.h"

namespace sluice::policy {

// Joins neighbours of the same file; otherwise preserves the order.
void merge_neighbours(std::vector<Extent>* parts);

// `seen` are the same parts as `known`, observed as the pages that surround them.
bool is_coarser(std::span<const Extent> seen, std::span<const Extent> known);

// How a sample's parts became known. What was seen in this run has priority.
enum class Source : uint8_t {
  kSeen,      // a worker read the sample
  kStored,    // one did so in an earlier run
  kDeclared,  // the job declared it
  kGuessed,   // inferred from observations of other samples
};

class SampleSet {
 public:
  explicit SampleSet(uint64_t samples) : samples_(samples) {}

  uint64_t samples() const { return samples_; }
  uint64_t known() const { return known_; }  // samples with extents
  uint64_t reach() const { return reach_; }  // no sample from here on is known
  uint64_t held() const { return held_; }    // bytes of memory that the tables take, about
  // The sample consists of `parts` from now on, unless better information exists: seen parts are
  // replaced only by parts seen later; parts of an earlier run (kStored) or declared by the job
  // (kDeclared) also by later declarations; and a guess is accepted only for samples of which
  // nothing is known. More than kMaxParts parts count as none: planning cannot use such a sample.
  void learn(uint64_t index, std::vector<Extent> parts, Source source = Source::kSeen);
  // Empty: not known. Valid until something is learned about any sample.
  std::span<const Extent> parts(uint64_t index) const;
  Source source(uint64_t index) const;  // REQUIRES: it is known
  // Visits all known samples, by ascending index, until `visit` returns false. `visit` must not
  // change the set.
  void for_each_known(const std::function<bool(uint64_t index)>& visit) const;
  uint64_t bytes(uint64_t index) const;
  // Samples that were seen to differ from what was known, or seen for the first time.
  uint64_t news() const { return news_; }
  // A guess made these parts of what was seen, which contains them.
  void refine(uint64_t index, std::vector<Extent> parts);
  void drop(Source source);  // all that is known from there
  void clear();              // no sample is known any more
  static constexpr size_t kMaxParts = 64;

 private:
  static constexpr FileRef kMany =
      FileRef::whole_file(SampleFileId{INT32_MAX});  // its parts are in many_
  static constexpr uint64_t kBlockSamples = 64;

  // Neighbours, [64 * b, 64 * b + 64): the known ones, packed.
  struct Block {
    uint64_t known = 0;                // one bit per sample
    std::array<uint64_t, 2> source{};  // the lower and the upper bit of each sample's Source
    std::vector<Extent> extents;       // of the known samples, in their order
    size_t place(uint64_t bit) const;  // index into `extents`
  };

  const Extent* find(uint64_t index) const;  // nullptr: not known
  bool overrides(uint64_t index, const std::vector<Extent>& parts, Source source);
  void set(uint64_t index, std::vector<Extent> parts);
  void set_source(uint64_t index, Source source);
  void remove(uint64_t index);

  const uint64_t samples_;
  uint64_t known_ = 0, news_ = 0, reach_ = 0, held_ = 0;
  std::unordered_map<uint64_t, Block> blocks_;
  std::unordered_map<uint64_t, std::vector<Extent>> many_;
};

}  // namespace sluice::policy
