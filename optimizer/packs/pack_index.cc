#include "optimizer/packs/pack_index.h"

#include <numeric>

namespace sluice::optimizer {

void PackIndex::add(uint32_t number, uint64_t bytes, std::vector<uint32_t> lengths,
                    std::span<const Use> use, Rank rank) {
  Pack& pack = packs_[number];
  pack.bytes = bytes;
  pack.data = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  pack.lengths = std::move(lengths);
  bytes_ += bytes;
  for (const Use& one : use) {
    const std::optional<Place> known = find(one.hash);
    if (known && known->pack != number && rank == Rank::kOldest) continue;
    places_[one.hash] = {number, one.entry};
    if (known) lose(*known);
    if (known && known->pack != number) judge(known->pack, &packs_.at(known->pack));
    const uint64_t length = pack.lengths[one.entry];
    pack.useful += length;
    ++pack.samples;
    useful_ += length;
    ++samples_;
  }
  judge(number, &pack);
}

std::optional<PackIndex::Place> PackIndex::find(uint64_t hash) const {
  const auto at = places_.find(hash);
  if (at == places_.end() || !has(at->second.pack)) return std::nullopt;
  return at->second;
}

uint32_t PackIndex::length(Place place) const { return packs_.at(place.pack).lengths[place.entry]; }

void PackIndex::remove_sample(uint64_t hash, Place place) {
  if (find(hash) != place) return;
  places_.erase(hash);
  lose(place);
  judge(place.pack, &packs_.at(place.pack));
}

// The caller replaces or removes the place, and judges the pack.
void PackIndex::lose(Place place) {
  Pack& pack = packs_.at(place.pack);
  const uint64_t length = pack.lengths[place.entry];
  pack.useful -= length;
  --pack.samples;
  useful_ -= length;
  --samples_;
}

void PackIndex::judge(uint32_t number, Pack* pack) {
  if (pack->samples == 0) {
    bytes_ -= pack->bytes;
    packs_.erase(number);
    empty_.push_back(number);
  } else if (pack->sparse() && !pack->queued) {
    pack->queued = true;
    sparse_.push_back(number);
  }
}

bool PackIndex::remove(uint32_t number) {
  const auto at = packs_.find(number);
  if (at == packs_.end()) return false;
  samples_ -= at->second.samples;
  useful_ -= at->second.useful;
  bytes_ -= at->second.bytes;
  packs_.erase(at);
  sweep();
  return true;
}

// Each place is checked once for each removed one, on average.
void PackIndex::sweep() {
  constexpr uint64_t kFew = 4096;
  if (places_.size() <= 2 * samples_ + kFew) return;
  std::erase_if(places_, [this](const auto& place) { return !has(place.second.pack); });
}

std::optional<uint32_t> PackIndex::take_sparse() {
  while (!sparse_.empty()) {
    const uint32_t number = sparse_.front();
    sparse_.pop_front();
    const auto at = packs_.find(number);
    if (at != packs_.end() && at->second.sparse()) return number;
  }
  return std::nullopt;
}

}  // namespace sluice::optimizer
