#include "optimizer/core/harm_keeper.h"

#include <algorithm>
#include <iterator>

namespace sluice::optimizer {

// Samples that overlap in one thread cannot be timed separately: a newly begun sample replaces the
// one before it, whose end then finds another sample and is ignored.
void HarmKeeper::begun(uint64_t reader, uint32_t dataset, uint64_t index, const Begin& begin) {
  if (open_.size() >= kMostOpen) open_.clear();  // events of their ends were lost
  open_[reader] = {dataset, index, begin};
}

// A native sample is one that no mechanism delivered: it counts for the control group of each.
std::optional<HarmKeeper::Finding> HarmKeeper::ended(uint64_t reader, uint32_t dataset,
                                                     uint64_t index, uint64_t time_ns) {
  const auto at = open_.find(reader);
  if (at == open_.end() || at->second.dataset != dataset || at->second.index != index) {
    return std::nullopt;
  }
  const Begin begin = at->second.begin;
  open_.erase(at);
  if (time_ns < begin.time_ns) return std::nullopt;
  Pair& pair = watches_[dataset];
  const uint64_t took = time_ns - begin.time_ns;
  std::optional<Finding> found;
  const auto note = [&found](Mechanism mechanism, HarmWatch::Verdict verdict) {
    if (verdict != HarmWatch::Verdict::kNothing) found = {mechanism, verdict};
  };
  if (begin.how == How::kServed) {
    note(begin.by, pair[static_cast<size_t>(begin.by)].served(took, time_ns, begin.expected_ns));
    return found;
  }
  for (const Mechanism mechanism : {Mechanism::kRecords, Mechanism::kCopies}) {
    note(mechanism, pair[static_cast<size_t>(mechanism)].native(took, time_ns));
  }
  return found;
}

std::optional<HarmKeeper::Finding> HarmKeeper::wasted(uint32_t dataset, uint64_t ns,
                                                      uint64_t now_ns) {
  const auto verdict =
      watches_[dataset][static_cast<size_t>(Mechanism::kCopies)].wasted(ns, now_ns);
  if (verdict == HarmWatch::Verdict::kNothing) return std::nullopt;
  return Finding{Mechanism::kCopies, verdict};
}

const HarmWatch* HarmKeeper::find(uint32_t dataset, Mechanism mechanism) const {
  const auto at = watches_.find(dataset);
  return at == watches_.end() ? nullptr : &at->second.watches[static_cast<size_t>(mechanism)];
}

std::vector<uint32_t> HarmKeeper::off() const {
  std::vector<uint32_t> out;
  for (const auto& [dataset, pair] : watches_) {
    const bool any = std::any_of(std::begin(pair.watches), std::end(pair.watches),
                                 [](const HarmWatch& watch) { return watch.is_off(); });
    if (any) out.push_back(dataset);
  }
  return out;
}

}  // namespace sluice::optimizer
