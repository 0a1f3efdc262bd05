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

ImportanceBook::Shared& ImportanceBook::shared(const Who& who, const ImportanceOptions& options,
                                               uint64_t capacity) {
  Shared& shared = systems_[who.dataset];
  if (shared.system == nullptr) {
    using StandIns = ImportanceOptions::StandIns;
    const auto samples = static_cast<uint32_t>(who.samples);
    if (options.stand_ins == StandIns::kSameLabel) shared.labels.assign(samples, kUnknownLabel);
    const SystemSettings settings = {.capacity = capacity,
                                     .samples = samples,
                                     .selection = options.selection,
                                     .h_share = options.h_share,
                                     .most_substituted = options.most_substituted,
                                     .reads_packages = false,
                                     .labels = Labels(shared.labels),
                                     .seed = options.selection.seed};
    const bool any = options.stand_ins != StandIns::kNever;
    shared.system =
        std::make_unique<ICacheSystem>(settings, any ? Substitute::kL : Substitute::kNever, any);
  }
  shared.system->set_capacity(capacity);
  return shared;
}

bool ImportanceBook::report(const Who& who, uint64_t sample, double value, uint32_t label) {
  Entry* const own = entry(who);
  if (own == nullptr) return false;
  const bool good = sample < own->values.samples() &&
                    own->values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own->reported : own->refused);
  const auto shared = systems_.find(who.dataset);
  if (shared != systems_.end() && sample < shared->second.labels.size() && label != kUnknownLabel) {
    shared->second.labels[sample] = label;
  }
  return good;
}

std::vector<bool> ImportanceBook::select(const Who& who, uint32_t epoch,
                                         const ImportanceOptions& options,
                                         std::span<const uint8_t> candidates, uint64_t capacity) {
  Entry* const own = entry(who);
  if (own == nullptr) return {};
  if (own->selector == nullptr) {
    const SelectorInfo* info = find_selector(options.selector);
    own->selector = (info != nullptr ? *info : selectors()[0]).make(options.selection);
  }
  std::vector<bool> chosen = own->selector->select(epoch, own->values.all());
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i] == 0) chosen[i] = false;
  }
  own->epoch = epoch;
  own->selected = static_cast<uint64_t>(std::count(chosen.begin(), chosen.end(), true));
  own->all_selected += own->selected;
  own->all_offered += static_cast<uint64_t>(
      candidates.empty() ? static_cast<std::ptrdiff_t>(chosen.size())
                         : std::count_if(candidates.begin(), candidates.end(),
                                         [](uint8_t candidate) { return candidate != 0; }));
  ICacheSystem& system = *shared(who, options, capacity).system;
  system.begin_chosen(who.job, chosen, own->values.all(), candidates);
  own->ranks.begin_epoch(system.evicted());
  return chosen;
}

Answer ImportanceBook::serve(const Who& who, SampleId requested, const BytesOf& bytes) {
  const auto own = entries_.find({who.job, who.dataset});
  const auto shared = systems_.find(who.dataset);
  Answer answer{requested, Served::kMiss};
  if (own == entries_.end() || own->second.selector == nullptr || shared == systems_.end()) {
    return answer;
  }
  const uint64_t size = bytes(requested);
  if (size != 0) {
    ICacheSystem& system = *shared->second.system;
    const auto known = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
    answer = system.request(who.job, requested, known);
    own->second.ranks.decide(answer.sample, system.rank(answer.sample), system.evicted());
  }
  ++own->second.served.by_kind[static_cast<size_t>(answer.how)];
  return answer;
}

std::span<const KeepRanks::Rank> ImportanceBook::on_read(uint32_t job, uint32_t dataset,
                                                         uint64_t sample) {
  const auto own = entries_.find({job, dataset});
  if (own == entries_.end() || sample >= own->second.values.samples()) return {};
  return own->second.ranks.on_read(static_cast<SampleId>(sample));
}

void ImportanceBook::forget_job(uint32_t job) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto [of_job, dataset] = at->first;
    if (of_job != job) {
      ++at;
      continue;
    }
    const auto shared = systems_.find(dataset);
    if (shared != systems_.end()) shared->second.system->end_job(job);
    at = entries_.erase(at);
    const bool used =
        std::any_of(entries_.begin(), entries_.end(),
                    [&, of = dataset](const auto& e) { return e.first.second == of; });
    if (!used && shared != systems_.end()) systems_.erase(shared);
  }
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
      const ICache& cache = shared->second.system->cache();
      const Ledger* ledger = cache.ledger(key.first);
      if (ledger != nullptr) view.displaced = ledger->lost();
      view.benefit = shared->second.system->benefit(key.first);
      view.swaps = cache.h_cache().swaps();
    }
    all.push_back(view);
  }
  return all;
}

}  // namespace sluice::optimizer
