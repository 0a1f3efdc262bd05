// Suggestions for mistyped words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

// "; did you mean WORD?" with the candidate that is nearest to `word`; empty if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sluice::cli
