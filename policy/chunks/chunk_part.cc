#include "policy/chunks/chunk_part.h"

#include <numeric>

namespace sluice::policy {

ChunkPart::ChunkPart(const ChunkMap& all, uint32_t rank, uint32_t ranks)
    : numbers_(all.samples(), kNoSample) {
  const auto end_of = [&](uint64_t some) {
    return static_cast<uint32_t>(uint64_t{all.samples()} * some / ranks);
  };
  const uint32_t begin = end_of(rank), end = end_of(uint64_t{rank} + 1);
  samples_.reserve(end - begin);
  uint32_t place = 0;
  for (uint32_t chunk = 0; chunk < all.chunks(); ++chunk) {
    bool is_first = true;
    for (const SampleId sample : all.members(chunk)) {
      const uint32_t at = place++;
      if (at < begin || at >= end) continue;
      if (is_first) begins_.push_back(samples());
      is_first = false;
      numbers_[sample] = samples();
      samples_.push_back(sample);
    }
  }
}

std::vector<SampleId> ChunkPart::numbers_in_order() const {
  std::vector<SampleId> numbers(samples());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace sluice::policy
