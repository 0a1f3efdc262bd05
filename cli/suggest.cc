#include "cli/suggest.h"

#include <fmt/format.h>

#include "protocol/words.h"

namespace sluice::cli {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  unsigned least = ~0U;
  for (const std::string& candidate : candidates) {
    const unsigned distance =
        protocol::edit_distance(word.data(), word.size(), candidate.data(), candidate.size());
    if (distance >= least) continue;
    least = distance;
    nearest = &candidate;
  }
  if (nearest == nullptr || !protocol::is_near(least, word.size())) return "";
  return fmt::format("; did you mean {}?", *nearest);
}

}  // namespace sluice::cli
