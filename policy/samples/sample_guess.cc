#include "policy/samples/sample_guess.h"

#include <algorithm>

namespace sluice::policy {

std::span<const Extent> SampleGuess::parts(uint64_t index) const {
  if (index >= samples() || extents_[index * each_].file == FileRef()) return {};
  return std::span(extents_).subspan(index * each_, each_);
}

bool SampleGuess::agrees(const Observation& seen) const {
  const std::span<const Extent> expected = parts(seen.index);
  const auto of_header = [this](const Extent& part) { return part.offset < match_.header; };
  if (!match_.exact && std::all_of(seen.parts.begin(), seen.parts.end(), of_header)) return true;
  return std::all_of(expected.begin(), expected.end(), [&](const Extent& part) {
    return std::any_of(seen.parts.begin(), seen.parts.end(), [&](const Extent& one) {
      return match_.exact ? one == part : contains(one, part);
    });
  });
}

}  // namespace sluice::policy
