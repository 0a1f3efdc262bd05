#include "policy/samples/sample_guess.h"

#include <algorithm>

namespace sluice::policy {

std::span<const Extent> SampleGuess::parts(uint64_t index) const {
  if (index >= samples() || extents_[index * each_].file == FileRef()) return {};
  return std::span(extents_).subspan(index * each_, each_);
}

namespace {

// Bytes that both have.
uint64_t shared(const Extent& a, const Extent& b) {
  const uint64_t begin = std::max(a.offset, b.offset);
  const uint64_t end = std::min(a.offset + a.length, b.offset + b.length);
  return a.file == b.file && begin < end ? end - begin : 0;
}

}  // namespace

bool SampleGuess::agrees(const Observation& seen) const {
  const std::span<const Extent> expected = parts(seen.index);
  const auto of_header = [this](const Extent& part) { return part.offset < match_.header; };
  if (!match_.exact && std::all_of(seen.parts.begin(), seen.parts.end(), of_header)) return true;
  return std::all_of(expected.begin(), expected.end(), [&](const Extent& part) {
    return std::any_of(seen.parts.begin(), seen.parts.end(), [&](const Extent& one) {
      if (match_.wider) return shared(part, one) >= part.length / 2;
      return match_.exact ? one == part : contains(one, part);
    });
  });
}

}  // namespace sluice::policy
