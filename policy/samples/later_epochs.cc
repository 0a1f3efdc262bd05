#include "policy/samples/later_epochs.h"

#include <iterator>

namespace sluice::policy {

bool LaterEpochs::publish(uint32_t epoch, uint64_t first, std::span<const uint32_t> indices) {
  const auto known = published_.find(epoch);
  if (first > (known == published_.end() ? 0 : known->second.size())) return false;
  begin();
  Indices& waiting = published_[epoch];
  waiting.resize(first);
  waiting.insert(waiting.end(), indices.begin(), indices.end());
  if (published_.size() > kMost) published_.erase(std::prev(published_.end()));
  return true;
}

void LaterEpochs::expect(std::span<const uint32_t> indices) {
  if (empty()) Indices(indices.begin(), indices.end()).swap(expected_);
}

std::pair<uint32_t, LaterEpochs::Indices> LaterEpochs::take_first() {
  auto first = published_.extract(published_.begin());
  return {first.key(), std::move(first.mapped())};
}

std::span<const uint32_t> LaterEpochs::following(uint32_t epoch) const {
  const auto next = published_.find(epoch);
  return next != published_.end() ? next->second : expected_;
}

uint64_t LaterEpochs::positions() const {
  uint64_t positions = expected_.size();
  for (const auto& [epoch, waiting] : published_) positions += waiting.size();
  return positions;
}

}  // namespace sluice::policy
