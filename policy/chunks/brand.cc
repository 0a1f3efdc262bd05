#include "policy/chunks/brand.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::policy {
namespace {

// M over the samples of a chunk (section 3.2), where M is the memory over a sample's mean size. The
// paper's group size N / M is a mean here: groups differ by one chunk at most, so that all of the
// memory is used.
uint32_t count_groups(const ChunkMap& map, std::span<const uint32_t> bytes, uint64_t capacity) {
  const uint64_t all = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
  if (all <= capacity) return std::max(map.chunks(), 1U);
  const double locations = static_cast<double>(capacity) / static_cast<double>(all) * map.samples();
  return std::clamp(static_cast<uint32_t>(locations / map.chunk_samples()), 1U,
                    std::max(map.chunks() - 1, 1U));
}

}  // namespace

Brand::Brand(const ChunkMap& map, std::span<const uint32_t> bytes, uint64_t capacity, uint64_t seed)
    : map_(map),
      bytes_(bytes),
      capacity_(capacity),
      groups_(count_groups(map, bytes, capacity)),
      random_(mixed(seed)),
      slots_(static_cast<size_t>(groups_) * map.chunk_samples(), kNoSample),
      filled_(map.samples()) {}

void Brand::begin_epoch() {
  filled_.assign(filled_.size(), false);
  for (const SampleId sample : slots_) {
    if (sample != kNoSample) filled_[sample] = true;
  }
}

void Brand::lost(SampleId sample) {
  if (!in_memory(sample)) return;
  slots_[place_of(sample)] = kNoSample;
  used_ -= bytes_[sample];
}

uint32_t Brand::first_chunk(uint32_t group) const {
  // The least chunk whose group_of() is `group`.
  return static_cast<uint32_t>((static_cast<uint64_t>(group) * map_.chunks() + groups_ - 1) /
                               groups_);
}

std::span<SampleId> Brand::slots_of(uint32_t group) {
  return std::span(slots_).subspan(static_cast<size_t>(group) * map_.chunk_samples(),
                                   map_.chunk_samples());
}

Brand::Answer Brand::request(SampleId requested, std::vector<SampleId>* loaded) {
  const uint32_t group = group_of(map_.chunk_of(requested));
  const uint32_t slot = map_.slot_of(requested);
  SampleId& place = slots_of(group)[slot];
  Answer answer;
  if (place == kNoSample) {
    answer.chunk = choose(group, slot);
    if (answer.chunk == kNoChunk) return {.sample = requested, .alone = true};
    fill(answer.chunk, slot, &answer, loaded);
  }
  answer.sample = place;
  if (holds_all()) return answer;
  used_ -= bytes_[place];
  place = kNoSample;  // self-invalidation
  return answer;
}

uint32_t Brand::fillable(uint32_t chunk) const {
  const std::span<const SampleId> members = map_.members(chunk);
  const size_t first = static_cast<size_t>(group_of(chunk)) * map_.chunk_samples();
  uint32_t count = 0;
  for (size_t slot = 0; slot < members.size(); ++slot) {
    count += slots_[first + slot] == kNoSample && !filled_[members[slot]] ? 1 : 0;
  }
  return count;
}

// The refill policy: of the group's chunks that can fill the slot one of the highest FillRate.
uint32_t Brand::choose(uint32_t group, uint32_t slot) {
  uint32_t best = kNoChunk, most = 0, equal = 0;
  for (uint32_t chunk = first_chunk(group); chunk < first_chunk(group + 1); ++chunk) {
    const std::span<const SampleId> members = map_.members(chunk);
    if (slot >= members.size() || filled_[members[slot]]) continue;
    const uint32_t count = fillable(chunk);
    if (count > most) {
      most = count;
      equal = 0;
    }
    if (count == most && random_.below(++equal) == 0) best = chunk;
  }
  return best;
}

// The requested slot first; the others while the memory's bytes last.
void Brand::fill(uint32_t chunk, uint32_t slot, Answer* answer, std::vector<SampleId>* loaded) {
  const std::span<const SampleId> members = map_.members(chunk);
  const std::span<SampleId> slots = slots_of(group_of(chunk));
  const auto put = [&](size_t at) {
    slots[at] = members[at];
    filled_[members[at]] = true;
    used_ += bytes_[members[at]];
    answer->useful += bytes_[members[at]];
    if (loaded != nullptr) loaded->push_back(members[at]);
  };
  put(slot);
  for (size_t at = 0; at < members.size(); ++at) {
    if (slots[at] != kNoSample || filled_[members[at]]) continue;
    if (used_ + bytes_[members[at]] <= capacity_) put(at);
  }
}

uint64_t Brand::footprint() const {
  return slots_.capacity() * sizeof(SampleId) + filled_.capacity() / 8 + map_.samples() * 12ULL;
}

}  // namespace sluice::policy
