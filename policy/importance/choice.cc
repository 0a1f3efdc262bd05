#include "policy/importance/choice.h"

#include <algorithm>
#include <cstddef>

namespace sluice::policy {
void choose(EpochChoice* choice) {
  std::vector<float>& values = choice->values;
  const std::vector<uint8_t>& candidates = choice->candidates;
  choice->chosen = choice->selector->select(choice->epoch, values, candidates);
  choice->count_offered = values.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i] != 0) continue;
    values[i] = kUnknownImportance;  // so it counts once where several share the cache
    --choice->count_offered;
  }
  choice->count_chosen =
      static_cast<uint64_t>(std::count(choice->chosen.begin(), choice->chosen.end(), true));
  choice->top = top_of(choice->chosen, values, choice->h_share);
  choice->list = std::make_shared<const HList>(static_cast<uint32_t>(values.size()), choice->top);
  if (!choice->looks_ahead) return;
  std::vector<HListEntry> coming;
  choice->coming = std::make_shared<const Coming>(*choice->selector, choice->epoch, values,
                                                  candidates, choice->h_share, &coming);
  choice->coming_list = std::make_shared<HList>(static_cast<uint32_t>(values.size()), coming);
}

}  // namespace sluice::policy
