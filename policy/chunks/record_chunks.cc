#include "policy/chunks/record_chunks.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "protocol/page.h"

namespace sluice::policy {

std::optional<RecordChunks> record_chunks(const SampleSet& set, uint32_t chunk_samples) {
  const uint64_t samples = set.samples();
  if (samples == 0 || samples >= kNoSample || set.known() != samples) return std::nullopt;
  struct Place {
    FileId file{};
    uint64_t offset = 0;
    SampleId sample = 0;
  };
  std::vector<Place> places;
  std::vector<uint32_t> bytes;
  places.reserve(samples);
  bytes.reserve(samples);
  for (SampleId sample = 0; sample < samples; ++sample) {
    const std::span<const Extent> parts = set.parts(sample);
    if (parts.empty()) return std::nullopt;
    uint64_t sum = 0;
    for (const Extent& part : parts) {
      if (part.file.is_whole()) return std::nullopt;
      sum += (part.length + kPage - 1) / kPage * kPage;
    }
    const Extent& main = main_part(parts);
    places.push_back({main.file.followed(), main.offset, sample});
    bytes.push_back(
        static_cast<uint32_t>(std::min<uint64_t>(sum, std::numeric_limits<uint32_t>::max())));
  }
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return std::tie(a.file, a.offset, a.sample) < std::tie(b.file, b.offset, b.sample);
  });
  std::vector<SampleId> order;
  std::vector<uint32_t> begins;
  order.reserve(samples);
  for (uint32_t at = 0; at < samples; ++at) {
    const bool other_file = at != 0 && places[at].file != places[at - 1].file;
    if (at == 0 || other_file || at - begins.back() == chunk_samples) begins.push_back(at);
    order.push_back(places[at].sample);
  }
  return RecordChunks{ChunkMap(std::move(order), std::move(begins)), std::move(bytes)};
}

}  // namespace sluice::policy
