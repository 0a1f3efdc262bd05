#include "optimizer/importance/book.h"

#include <algorithm>

namespace sluice::optimizer {

ImportanceBook::Entry* ImportanceBook::entry(uint32_t job, uint32_t dataset, uint64_t samples) {
  const auto known = entries_.find({job, dataset});
  if (known != entries_.end()) return &known->second;
  uint64_t all = samples;
  for (const auto& [key, other] : entries_) all += other.values.samples();
  if (samples > kMostSamples || all > kMostAll) return nullptr;
  return &entries_.try_emplace({job, dataset}, samples, selection_).first->second;
}

bool ImportanceBook::report(uint32_t job, uint32_t dataset, uint64_t samples, uint64_t sample,
                            double value) {
  Entry* const own = entry(job, dataset, samples);
  if (own == nullptr) return false;
  const bool good = sample < own->values.samples() &&
                    own->values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own->reported : own->refused);
  return good;
}

std::vector<bool> ImportanceBook::select(uint32_t job, uint32_t dataset, uint64_t samples,
                                         uint32_t epoch) {
  Entry* const own = entry(job, dataset, samples);
  if (own == nullptr) return {};
  std::vector<bool> chosen = own->selector->select(epoch, own->values.all());
  own->epoch = epoch;
  own->selected = static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
  return chosen;
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
    const View view{key.first,   key.second,         own.epoch,   own.reported,
                    own.refused, own.values.known(), own.selected};
    all.push_back(view);
  }
  return all;
}

}  // namespace sluice::optimizer
