#include "optimizer/core/harm_keeper.h"

namespace sluice::optimizer {

// Of samples that overlap in one thread it cannot be told what each took: the last one replaces the
// one before, whose end finds another and is not timed.
void HarmKeeper::begun(uint64_t reader, uint32_t dataset, uint64_t index, Mechanism by, How how,
                       uint64_t time_ns) {
  if (open_.size() >= kMostOpen) open_.clear();  // their ends were lost
  open_[reader] = {dataset, index, time_ns, by, how};
}

std::optional<HarmKeeper::Mechanism> HarmKeeper::ended(uint64_t reader, uint32_t dataset,
                                                       uint64_t index, uint64_t time_ns) {
  const auto at = open_.find(reader);
  if (at == open_.end() || at->second.dataset != dataset || at->second.index != index) {
    return std::nullopt;
  }
  const Open open = at->second;
  open_.erase(at);
  if (time_ns < open.begun_ns) return std::nullopt;
  Pair& pair = watches_[dataset];
  const uint64_t took = time_ns - open.begun_ns;
  if (open.how == How::kNative) {
    for (HarmWatch& watch : pair.watches) watch.native(took);
    return std::nullopt;
  }
  if (!pair[static_cast<size_t>(open.by)].served(took, time_ns)) return std::nullopt;
  return open.by;
}

bool HarmKeeper::wasted(uint32_t dataset, uint64_t ns, uint64_t now_ns) {
  return watches_[dataset][static_cast<size_t>(Mechanism::kCopies)].wasted(ns, now_ns);
}

const HarmWatch* HarmKeeper::find(uint32_t dataset, Mechanism mechanism) const {
  const auto at = watches_.find(dataset);
  return at == watches_.end() ? nullptr : &at->second.watches[static_cast<size_t>(mechanism)];
}

}  // namespace sluice::optimizer
