#include "policy/importance/h_list.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sluice::policy {

HList::HList(uint32_t samples, std::span<const HListEntry> entries)
    : importance_(samples, kUnknownImportance) {
  for (const HListEntry& entry : entries) {
    const auto importance = static_cast<float>(entry.importance);
    if (entry.sample >= samples || !std::isfinite(importance)) continue;
    float& place = importance_[entry.sample];
    if (!is_known(place)) ++size_;
    place = importance;
  }
}

void HList::set(SampleId sample, float importance) {
  size_ += is_known(importance) ? 1 : 0;
  size_ -= contains(sample) ? 1 : 0;
  importance_[sample] = importance;
}

std::vector<HListEntry> top_of(const std::vector<bool>& chosen, std::span<const float> values,
                               double share) {
  std::vector<HListEntry> entries;
  size_t selected = 0;
  for (size_t sample = 0; sample < values.size(); ++sample) {
    if (!chosen[sample]) continue;
    ++selected;
    if (is_known(values[sample])) entries.push_back({sample, values[sample]});
  }
  const auto wanted = static_cast<size_t>(
      std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(selected)));
  if (wanted >= entries.size()) return entries;
  const auto end = entries.begin() + static_cast<std::ptrdiff_t>(wanted);
  std::nth_element(entries.begin(), end, entries.end(), [](const auto& a, const auto& b) {
    return a.importance != b.importance ? a.importance > b.importance : a.sample < b.sample;
  });
  entries.resize(wanted);
  return entries;
}

}  // namespace sluice::policy
