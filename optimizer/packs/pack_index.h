// Which samples are in which pack, and how much of each pack is still of use. A sample is known by
// a keyed hash: a reader of one compares the path, which the pack itself has, so that two samples
// with one hash cost a miss and no more. Takes about 50 bytes a sample, whatever its path. Pure;
// one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::optimizer {

class PackIndex {
 public:
  struct Place {
    uint32_t pack;   // its number, never used twice
    uint32_t entry;  // in it
    bool operator==(const Place&) const = default;
  };
  struct Use {
    uint64_t hash;
    uint32_t entry;
  };
  enum class Rank { kNewest, kOldest };

  // A pack whose entries have these lengths. Those in `use` are of use; of a hash that is known
  // already the newest pack's entry wins, and so does the last entry within one pack.
  // REQUIRES: the pack is not there.
  void add(uint32_t pack, uint64_t bytes, std::vector<uint32_t> lengths, std::span<const Use> use,
           Rank rank);
  std::optional<Place> find(uint64_t hash) const;
  bool has(uint32_t pack) const { return packs_.count(pack) != 0; }
  uint32_t length(Place place) const;  // REQUIRES: find() gave the place
  // If it is there still.
  void remove_sample(uint64_t hash, Place place);
  // Removes all its samples, too. False: it is not there.
  bool remove(uint32_t pack);

  // Packs of which nothing is of use any more; they have been removed here. Each is returned once.
  std::vector<uint32_t> take_empty() { return std::exchange(empty_, {}); }
  // A pack of which less than half the bytes are of use ("dynamic packaging", iCache, section
  // III-C). Each is returned once.
  std::optional<uint32_t> take_sparse();

  uint64_t packs() const { return packs_.size(); }
  uint64_t samples() const { return samples_; }  // of use
  uint64_t bytes() const { return bytes_; }      // of whole packs
  uint64_t useful() const { return useful_; }    // bytes of samples of use

 private:
  struct Pack {
    uint64_t bytes = 0;    // of the whole file
    uint64_t data = 0;     // of all its samples
    uint64_t useful = 0;   // of its samples of use
    uint32_t samples = 0;  // of use
    bool queued = false;   // in sparse_
    std::vector<uint32_t> lengths;

    bool sparse() const { return samples > 0 && useful * 2 < data; }
  };

  void lose(Place place);
  void judge(uint32_t number, Pack* pack);
  void sweep();

  std::unordered_map<uint32_t, Pack> packs_;
  // Places in removed packs count as none; sweep() removes them now and then.
  std::unordered_map<uint64_t, Place> places_;
  std::vector<uint32_t> empty_;
  std::deque<uint32_t> sparse_;
  uint64_t samples_ = 0, bytes_ = 0, useful_ = 0;
};

}  // namespace sluice::optimizer
