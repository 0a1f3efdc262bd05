#include "policy/planner/gatherer.h"

#include <algorithm>
#include <iterator>

namespace sluice::policy {

void Gatherer::add(const WantedExtent& wanted, Range range) {
  const Key key{wanted.extent.file.followed(), wanted.session, range.begin, turn_};
  reads_.emplace(key, WaitingRead{wanted, range});
  by_turn_.emplace(turn_++, key);
  bytes_ += range.length();
}

Gatherer::Reads::iterator Gatherer::erase(Reads::iterator at) {
  by_turn_.erase(std::get<3>(at->first));
  bytes_ -= at->second.range.length();
  return reads_.erase(at);
}

std::vector<WaitingRead> Gatherer::take(uint64_t longest, const MayBridge& may_bridge,
                                        const IsWanted& is_wanted,
                                        std::vector<WaitingRead>* removed) {
  std::vector<WaitingRead> taken;
  while (!by_turn_.empty()) {
    const auto first = reads_.find(by_turn_.begin()->second);
    if (is_wanted(first->second.wanted)) {
      taken.push_back(first->second);
      break;
    }
    removed->push_back(first->second);
    erase(first);
  }
  if (taken.empty()) return taken;
  Range span = taken.front().range;
  auto right = erase(reads_.find(by_turn_.begin()->second));
  // Whether the request may be extended to this read.
  const auto may = [&](const Reads::iterator& at) {
    const WaitingRead& read = at->second;
    const WantedExtent& first = taken.front().wanted;
    if (read.wanted.extent.file != first.extent.file || read.wanted.session != first.session) {
      return false;
    }
    const Range both{std::min(span.begin, read.range.begin), std::max(span.end, read.range.end)};
    if (both.length() > longest) return false;
    const Range gap{std::min(span.end, read.range.end), std::max(span.begin, read.range.begin)};
    return gap.begin >= gap.end || may_bridge(read, gap);
  };
  const auto join = [&](Reads::iterator at) {
    const WaitingRead read = at->second;
    if (!is_wanted(read.wanted)) {
      removed->push_back(read);
    } else {
      span = {std::min(span.begin, read.range.begin), std::max(span.end, read.range.end)};
      taken.push_back(read);
    }
    return erase(at);
  };
  while (right != reads_.end() && may(right)) right = join(right);
  while (right != reads_.begin() && may(std::prev(right))) right = join(std::prev(right));
  return taken;
}

template <typename Test>
void Gatherer::remove(Test test, std::vector<WaitingRead>* removed) {
  for (auto at = reads_.begin(); at != reads_.end();) {
    if (!test(at->second)) {
      ++at;
      continue;
    }
    removed->push_back(at->second);
    at = erase(at);
  }
}

void Gatherer::remove_file(FileId file, std::vector<WaitingRead>* removed) {
  remove([file](const WaitingRead& read) { return read.wanted.extent.file == file; }, removed);
}

void Gatherer::remove_session(SessionId session, std::vector<WaitingRead>* removed) {
  remove([session](const WaitingRead& read) { return read.wanted.session == session; }, removed);
}

void Gatherer::remove_unwanted(const IsWanted& is_wanted, std::vector<WaitingRead>* removed) {
  remove([&](const WaitingRead& read) { return !is_wanted(read.wanted); }, removed);
}

}  // namespace sluice::policy
