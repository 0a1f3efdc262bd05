// Lists that take turns. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace sluice::policy {

// The first element of each list, then the second of each, and so on; lists that have ended are
// left out.
template <typename Element>
std::vector<Element> in_turns(std::vector<std::vector<Element>> each) {
  if (each.size() == 1) return std::move(each.front());
  size_t longest = 0;
  for (const std::vector<Element>& one : each) longest = std::max(longest, one.size());
  std::vector<Element> all;
  for (size_t at = 0; at < longest; ++at) {
    for (const std::vector<Element>& one : each) {
      if (at < one.size()) all.push_back(one[at]);
    }
  }
  return all;
}

}  // namespace sluice::policy
