#include "optimizer/importance/book.h"

#include <algorithm>

namespace sluice::optimizer {

ImportanceBook::Entry* ImportanceBook::entry(const Who& who) {
  const auto known = entries_.find({who.job, who.dataset});
  if (known != entries_.end()) return &known->second;
  uint64_t all = who.samples;
  for (const auto& [key, other] : entries_) all += other.values.samples();
  if (who.samples > kMostSamples || all > kMostAll) return nullptr;
  return &entries_.try_emplace({who.job, who.dataset}, who.samples).first->second;
}

ICacheSystem* ImportanceBook::system(const Who& who, Entry* own, const ImportanceOptions& options) {
  std::unique_ptr<ICacheSystem>& system = systems_[who.dataset];
  if (system == nullptr) {
    const SystemSettings settings = {.samples = static_cast<uint32_t>(who.samples),
                                     .h_share = options.h_share,
                                     .most_substituted = options.most_substituted,
                                     .reads_packages = false,
                                     .seed = options.selection.seed};
    system = std::make_unique<ICacheSystem>(settings, Substitute::kL, true);
  }
  if (own->selector == nullptr) {
    using StandIns = ImportanceOptions::StandIns;
    const SelectorInfo* info = find_selector(options.selector);
    own->selector = (info != nullptr ? *info : selectors()[0]).make(options.selection);
    if (options.stand_ins == StandIns::kSameLabel) own->labels.assign(who.samples, kUnknownLabel);
    system->join(who.job, Labels(own->labels), options.stand_ins != StandIns::kNever);
  }
  return system.get();
}

bool ImportanceBook::report(const Who& who, uint64_t sample, double value, uint32_t label) {
  Entry* const own = entry(who);
  if (own == nullptr) return false;
  const bool good = sample < own->values.samples() &&
                    own->values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own->reported : own->refused);
  if (sample < own->labels.size() && label != kUnknownLabel) own->labels[sample] = label;
  return good;
}

std::vector<bool> ImportanceBook::select(const Who& who, uint32_t epoch,
                                         const ImportanceOptions& options,
                                         std::span<const uint8_t> candidates, uint64_t capacity) {
  uint64_t all = systems_.count(who.dataset) != 0 ? 0 : who.samples;
  for (const auto& [dataset, other] : systems_) all += other->samples();
  const bool too_many = who.samples > kMostSelected || all > kMostSelectedAll;
  Entry* const own = too_many ? nullptr : entry(who);
  if (own == nullptr) return {};
  ICacheSystem* const shared = system(who, own, options);
  std::vector<bool> chosen = own->selector->select(epoch, own->values.all());
  uint64_t offered = chosen.size();
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i] != 0) continue;
    chosen[i] = false;
    --offered;
  }
  own->epoch = epoch;
  own->asked = 0;
  own->selected = static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
  own->all_selected += own->selected;
  own->all_offered += offered;
  for (const SampleId sample : own->ranks.end_epoch()) shared->drop(sample);
  shared->set_capacity(capacity);
  shared->begin_chosen(who.job, chosen, own->values.all(), candidates);
  own->ranks.begin_epoch(shared->evicted());
  return chosen;
}

void ImportanceBook::set_benefit(const Who& who, double benefit) {
  const auto own = entries_.find({who.job, who.dataset});
  const auto shared = systems_.find(who.dataset);
  if (own == entries_.end() || own->second.selector == nullptr || shared == systems_.end()) return;
  shared->second->set_benefit(who.job, benefit);
}

bool ImportanceBook::follows(const Who& who, uint32_t epoch, uint64_t first, uint64_t count) {
  const auto at = entries_.find({who.job, who.dataset});
  if (at == entries_.end() || at->second.selector == nullptr || at->second.epoch != epoch ||
      at->second.asked != first || first + count > kMostAsked * who.samples) {
    return false;
  }
  at->second.asked += count;
  return true;
}

Answer ImportanceBook::serve(const Who& who, SampleId requested, const BytesOf& bytes) {
  Entry& own = entries_.at({who.job, who.dataset});
  Answer answer{requested, Served::kMiss};
  const uint64_t size = bytes(requested);
  ICacheSystem& shared = *systems_.at(who.dataset);
  // Nor is it served twice where it is not kept any more and has stood in before.
  const Ledger* ledger = shared.cache().ledger(who.job);
  if (size != 0 || (ledger != nullptr && ledger->served(requested))) {
    const auto known = static_cast<uint32_t>(std::clamp<uint64_t>(size, 1, UINT32_MAX));
    answer = shared.request(who.job, requested, known);
    const bool fetched = answer.how == Served::kMiss || answer.how == Served::kMissOther;
    own.ranks.decide(answer.sample, shared.rank(answer.sample), fetched, shared.evicted());
  }
  ++own.served.by_kind[static_cast<size_t>(answer.how)];
  return answer;
}

std::span<const KeepRanks::Rank> ImportanceBook::on_read(uint32_t job, uint32_t dataset,
                                                         uint64_t sample) {
  const auto own = entries_.find({job, dataset});
  if (own == entries_.end() || sample >= own->second.values.samples()) return {};
  return own->second.ranks.on_read(static_cast<SampleId>(sample));
}

void ImportanceBook::forget(uint32_t job, uint32_t dataset) {
  const auto shared = systems_.find(dataset);
  if (shared != systems_.end()) shared->second->end_job(job);
  entries_.erase({job, dataset});
  const bool used = std::any_of(entries_.begin(), entries_.end(), [dataset](const auto& entry) {
    return entry.first.second == dataset && entry.second.selector != nullptr;
  });
  if (!used) systems_.erase(dataset);
}

void ImportanceBook::forget_job(uint32_t job) {
  std::vector<uint32_t> datasets;
  for (const auto& [key, own] : entries_) {
    if (key.first == job) datasets.push_back(key.second);
  }
  for (const uint32_t dataset : datasets) forget(job, dataset);
}

void ImportanceBook::forget_dataset(uint32_t dataset) {
  std::erase_if(entries_, [dataset](const auto& entry) { return entry.first.second == dataset; });
  systems_.erase(dataset);
}

std::vector<ImportanceBook::View> ImportanceBook::views() const {
  std::vector<View> all;
  for (const auto& [key, own] : entries_) {
    View view{.job = key.first,
              .dataset = key.second,
              .epoch = own.epoch,
              .reported = own.reported,
              .refused = own.refused,
              .known = own.values.known(),
              .selected = own.selected,
              .all_offered = own.all_offered,
              .all_selected = own.all_selected,
              .served = own.served};
    const auto shared = systems_.find(key.second);
    if (shared != systems_.end() && own.selector != nullptr) {
      const ICache& cache = shared->second->cache();
      const Ledger* ledger = cache.ledger(key.first);
      if (ledger != nullptr) view.displaced = ledger->lost() + ledger->owed();
      view.benefit = shared->second->benefit(key.first);
      view.swaps = cache.h_cache().swaps();
    }
    all.push_back(view);
  }
  return all;
}

}  // namespace sluice::optimizer
