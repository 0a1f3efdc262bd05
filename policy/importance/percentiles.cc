#include "policy/importance/percentiles.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "policy/importance/values.h"

namespace sluice::policy {
namespace {

constexpr size_t kMostRanked = 1 << 12;  // values that give a percentile, or up to twice that

}  // namespace

Percentiles::Percentiles(std::span<const float> values) {
  sorted_.reserve(values.size());
  std::copy_if(values.begin(), values.end(), std::back_inserter(sorted_), is_known);
  // Of very many values a few thousand give the percentiles as well, in a tenth of the time.
  if (const size_t step = sorted_.size() / kMostRanked; step > 1) {
    size_t count = 0;
    for (size_t at = 0; at < sorted_.size(); at += step) sorted_[count++] = sorted_[at];
    sorted_.resize(count);
    sorted_.shrink_to_fit();
  }
  std::sort(sorted_.begin(), sorted_.end());
}

float Percentiles::of(float value) const {
  if (sorted_.empty()) return 0.5F;
  const auto above = std::upper_bound(sorted_.begin(), sorted_.end(), value);
  const auto place = std::max<ptrdiff_t>(above - sorted_.begin(), 1);
  return static_cast<float>(place) / static_cast<float>(sorted_.size());
}

}  // namespace sluice::policy
