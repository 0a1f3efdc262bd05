#include "policy/importance/choice.h"

#include <algorithm>
#include <cstddef>

namespace sluice::policy {

void choose(EpochChoice* choice) {
  std::vector<float>& values = choice->values;
  const std::vector<uint8_t>& candidates = choice->candidates;
  if (candidates.empty()) {
    choice->chosen = choice->selector->select(choice->epoch, values);
    choice->count_offered = values.size();
  } else {
    std::vector<float> of_candidates;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i] != 0) of_candidates.push_back(values[i]);
    }
    const std::vector<bool> some = choice->selector->select(choice->epoch, of_candidates);
    choice->count_offered = some.size();
    choice->chosen.assign(candidates.size(), false);
    for (size_t i = 0, at = 0; i < candidates.size(); ++i) {
      if (candidates[i] != 0) {
        choice->chosen[i] = some[at++];
      } else {
        values[i] = kUnknownImportance;  // so it counts once where several share the cache
      }
    }
  }
  choice->count_chosen =
      static_cast<uint64_t>(std::count(choice->chosen.begin(), choice->chosen.end(), true));
  choice->top = top_of(choice->chosen, values, choice->h_share);
  choice->list = std::make_shared<const HList>(static_cast<uint32_t>(values.size()), choice->top);
}

}  // namespace sluice::policy
