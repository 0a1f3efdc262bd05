#include "optimizer/importance/book.h"

#include <algorithm>

namespace sluice::optimizer {

ImportanceBook::Entry& ImportanceBook::entry(uint32_t job, uint32_t dataset, uint64_t samples) {
  return entries_.try_emplace({job, dataset}, samples, selection_).first->second;
}

bool ImportanceBook::report(uint32_t job, uint32_t dataset, uint64_t samples, uint64_t sample,
                            double value) {
  Entry& own = entry(job, dataset, samples);
  const bool good = sample < own.values.samples() &&
                    own.values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own.reported : own.refused);
  return good;
}

const std::vector<bool>& ImportanceBook::select(uint32_t job, uint32_t dataset, uint64_t samples,
                                                uint32_t epoch) {
  Entry& own = entry(job, dataset, samples);
  const auto known = own.chosen.find(epoch);
  if (known != own.chosen.end()) return known->second;
  while (own.chosen.size() >= kMostKept) own.chosen.erase(own.chosen.begin());
  return own.chosen.emplace(epoch, own.selector->select(epoch, own.values.all())).first->second;
}

void ImportanceBook::forget_job(uint32_t job) {
  std::erase_if(entries_, [job](const auto& entry) { return entry.first.first == job; });
}

void ImportanceBook::forget_dataset(uint32_t dataset) {
  std::erase_if(entries_, [dataset](const auto& entry) { return entry.first.second == dataset; });
}

std::vector<ImportanceBook::View> ImportanceBook::views() const {
  std::vector<View> all;
  for (const auto& [key, own] : entries_) {
    View view{key.first, key.second, 0, own.reported, own.refused, own.values.known(), 0};
    if (!own.chosen.empty()) {
      const auto& [epoch, chosen] = *own.chosen.rbegin();
      view.epoch = epoch;
      view.selected = static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
    }
    all.push_back(view);
  }
  return all;
}

}  // namespace sluice::optimizer
