#include "policy/importance/coming.h"

#include <algorithm>
#include <cstddef>

#include "policy/importance/values.h"

namespace sluice::policy {

Coming::Coming(const Selector& selector, uint32_t epoch, std::span<const float> values,
               Selector::Candidates candidates, double h_share, std::vector<HListEntry>* entries)
    : fetches_all_(selector.fetches_all(epoch + 1)) {
  if (const auto selecting = selector.next_selection(epoch + 1)) {
    outlook_ = selector.outlook(*selecting, values, candidates);
  }
  std::vector<bool> chosen(values.size());
  std::vector<float> margins(values.size());
  for (uint32_t sample = 0; sample < values.size(); ++sample) {
    if (!candidates.empty() && candidates[sample] == 0) continue;
    const std::optional<float> found = importance(sample, values[sample]);
    chosen[sample] = found.has_value();
    margins[sample] = found.value_or(0);
  }
  *entries = top_of(chosen, values, h_share);
  for (const HListEntry& entry : *entries) {
    const auto value = static_cast<float>(entry.importance);
    least_ = &entry == entries->data() ? value : std::min(least_, value);
  }
  for (uint32_t sample = 0; sample < values.size(); ++sample) {  // these are trained before
    if (chosen[sample] && !is_known(values[sample])) entries->push_back({sample, 0});
  }
  for (HListEntry& entry : *entries) entry.importance = margins[entry.sample];
}

std::optional<float> Coming::importance(SampleId sample, float value) const {
  const float margin = outlook_ == nullptr ? 0 : outlook_->margin(sample, value);
  if ((!fetches_all_ && margin <= 0) || value < least_) return std::nullopt;
  return std::max(margin, 0.0F);
}

}  // namespace sluice::policy
