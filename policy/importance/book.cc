#include "policy/importance/book.h"

#include <algorithm>
#include <set>

namespace sluice::optimizer {

ImportanceBook::Entry* ImportanceBook::entry(const Who& who) {
  const auto own = entries_.find({who.session, who.dataset});
  if (own != entries_.end()) return &own->second;
  std::shared_ptr<Known> known;
  std::set<const Known*> counted;
  uint64_t all = who.samples;
  for (const auto& [key, other] : entries_) {
    if (key.second == who.dataset && other.job == who.job) known = other.known;
    if (counted.insert(other.known.get()).second) all += other.known->values.samples();
  }
  if (known == nullptr) {
    if (who.samples > kMostSamples || all > kMostAll) return nullptr;
    known = std::make_shared<Known>(who.samples);
  }
  Entry& created = entries_[{who.session, who.dataset}];
  created.job = who.job;
  created.known = std::move(known);
  return &created;
}

ImportanceBook::Rank* ImportanceBook::rank(const Who& who, Entry* own,
                                           const ImportanceOptions& options) {
  const auto known = own->ranks.find(who.process);
  if (known != own->ranks.end()) return &known->second;
  uint64_t all = who.samples;
  for (const auto& [key, other] : entries_)
    all += other.ranks.size() * other.known->values.samples();
  if (all > kMostSelectedAll || own->ranks.size() >= kMostRanks) return nullptr;
  // Ranks of one job select with one seed.
  SelectionSettings selection = options.selection;
  selection.seed = own->known->seed.value_or(selection.seed);
  own->known->seed = selection.seed;
  std::unique_ptr<ICacheSystem>& system = systems_[who.dataset];
  if (system == nullptr) {
    const SystemSettings settings = {.samples = static_cast<uint32_t>(who.samples),
                                     .h_share = options.h_share,
                                     .most_substituted = options.most_substituted,
                                     .reads_packages = false,
                                     .seed = selection.seed};
    system = std::make_unique<ICacheSystem>(settings, Substitute::kL, true);
  }
  Rank& created = own->ranks[who.process];
  created.number = next_number_++;
  using Substitution = ImportanceOptions::Substitution;
  const SelectorInfo* info = find_selector(options.selector);
  created.selector = (info != nullptr ? *info : selectors()[0]).make(selection);
  Labels labels;
  if (options.substitution == Substitution::kSameLabel) {
    std::vector<uint32_t>& all_labels = own->known->labels;
    if (all_labels.empty()) all_labels.assign(who.samples, kUnknownLabel);
    labels = Labels(all_labels);
  }
  system->join(created.number, labels, options.substitution != Substitution::kNever, own->job);
  return &created;
}

bool ImportanceBook::report(const Who& who, uint64_t sample, double value, uint32_t label) {
  Entry* const own = entry(who);
  if (own == nullptr) return false;
  Known& known = *own->known;
  const bool good = sample < known.values.samples() &&
                    known.values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own->reported : own->refused);
  if (sample < known.labels.size() && label != kUnknownLabel) known.labels[sample] = label;
  return good;
}

std::shared_ptr<EpochChoice> ImportanceBook::ask(const Who& who, uint32_t epoch,
                                                 const ImportanceOptions& options,
                                                 std::vector<uint8_t> candidates) {
  Entry* const own = who.samples > kMostSelected ? nullptr : entry(who);
  Rank* const asking = own == nullptr ? nullptr : rank(who, own, options);
  if (asking == nullptr || asking->choice != nullptr) return nullptr;
  auto choice = std::make_shared<EpochChoice>();
  choice->selector = asking->selector;
  choice->epoch = epoch;
  choice->h_share = systems_.at(who.dataset)->h_share();
  const std::span<const float> values = own->known->values.all();
  choice->values.assign(values.begin(), values.end());
  choice->candidates = std::move(candidates);
  asking->choice = choice;
  return choice;
}

ImportanceBook::Rank* ImportanceBook::asker(const Who& who,
                                            const std::shared_ptr<EpochChoice>& choice) {
  const auto own = entries_.find({who.session, who.dataset});
  if (own == entries_.end()) return nullptr;
  const auto asking = own->second.ranks.find(who.process);
  return asking == own->second.ranks.end() || asking->second.choice != choice ? nullptr
                                                                              : &asking->second;
}

void ImportanceBook::drop(const Who& who, const std::shared_ptr<EpochChoice>& choice) {
  if (Rank* const asking = asker(who, choice); asking != nullptr) asking->choice.reset();
}

bool ImportanceBook::begin(const Who& who, const std::shared_ptr<EpochChoice>& choice,
                           uint64_t capacity) {
  Rank* const asking = asker(who, choice);
  if (asking == nullptr) return false;
  Entry& entry = entries_.at({who.session, who.dataset});
  Rank& rank = *asking;
  rank.choice.reset();
  rank.begun = true;
  rank.epoch = entry.epoch = choice->epoch;
  rank.asked = 0;
  entry.selected = choice->count_chosen;
  entry.all_selected += choice->count_chosen;
  entry.all_offered += choice->count_offered;
  ICacheSystem& shared = *systems_.at(who.dataset);
  for (const SampleId sample : rank.kept.end_epoch()) shared.drop(sample);
  shared.set_capacity(capacity);
  shared.begin_chosen(rank.number, choice.get());
  rank.kept.begin_epoch(shared.evicted());
  return true;
}

void ImportanceBook::set_benefit(const Who& who, double benefit) {
  const auto own = entries_.find({who.session, who.dataset});
  const auto shared = systems_.find(who.dataset);
  if (own == entries_.end() || shared == systems_.end()) return;
  const auto asking = own->second.ranks.find(who.process);
  if (asking != own->second.ranks.end())
    shared->second->set_benefit(asking->second.number, benefit);
}

bool ImportanceBook::follows(const Who& who, uint32_t epoch, uint64_t first, uint64_t count) {
  const auto own = entries_.find({who.session, who.dataset});
  if (own == entries_.end()) return false;
  const auto at = own->second.ranks.find(who.process);
  if (at == own->second.ranks.end() || !at->second.begun || at->second.epoch != epoch ||
      at->second.asked != first || first + count > kMostAsked * who.samples) {
    return false;
  }
  at->second.asked += count;
  return true;
}

void ImportanceBook::forget_lost(uint32_t dataset,
                                 const std::function<bool(SampleId sample)>& in_memory) {
  const auto shared = systems_.find(dataset);
  if (shared == systems_.end()) return;
  std::vector<const KeepRanks*> decided;
  for (const auto& [key, entry] : entries_) {
    if (key.second != dataset) continue;
    for (const auto& [process, rank] : entry.ranks) decided.push_back(&rank.kept);
  }
  const std::vector<SampleId> kept = shared->second->kept();
  for (size_t left = std::min(kept.size(), kMostLooked); left != 0; --left, ++looked_) {
    const SampleId sample = kept[looked_ % kept.size()];
    if (in_memory(sample)) continue;
    const bool comes = std::any_of(decided.begin(), decided.end(),
                                   [sample](const auto* kept) { return kept->awaits(sample); });
    if (!comes) shared->second->drop(sample);
  }
}

Answer ImportanceBook::serve(const Who& who, SampleId requested, const BytesOf& bytes) {
  Entry& own = entries_.at({who.session, who.dataset});
  Rank& asking = own.ranks.at(who.process);
  Answer answer{requested, Served::kMiss};
  const uint64_t size = bytes(requested);
  ICacheSystem& shared = *systems_.at(who.dataset);
  // A sample that was delivered as a substitute before is not delivered again, even if it cannot
  // be retained now.
  const Ledger* ledger = shared.cache().ledger(asking.number);
  if (size != 0 || (ledger != nullptr && ledger->served(requested))) {
    const auto known = static_cast<uint32_t>(std::clamp<uint64_t>(size, 1, UINT32_MAX));
    answer = shared.request(asking.number, requested, known);
    asking.kept.decide(answer.sample, shared.rank(answer.sample), answer.how, shared.evicted());
    return answer;  // counted when it is read
  }
  if (ledger != nullptr) shared.serve_itself(asking.number, requested);
  ++own.served.by_kind[static_cast<size_t>(answer.how)];
  return answer;
}

bool ImportanceBook::shares(uint32_t session) const {
  const auto selects = [](const Entry& entry) {
    return std::any_of(entry.ranks.begin(), entry.ranks.end(),
                       [](const auto& rank) { return rank.second.begun; });
  };
  for (auto own = entries_.lower_bound({session, 0});
       own != entries_.end() && own->first.first == session; ++own) {
    if (!selects(own->second)) continue;
    for (const auto& [key, other] : entries_) {
      const bool with_it = key.second == own->first.second && other.job != own->second.job;
      if (with_it && selects(other)) return true;
    }
  }
  return false;
}

size_t ImportanceBook::ranks(uint32_t session, uint32_t dataset) const {
  const auto own = entries_.find({session, dataset});
  return own == entries_.end() ? 0 : own->second.ranks.size();
}

bool ImportanceBook::is_rank(uint32_t session, uint32_t process, uint32_t dataset) const {
  const auto own = entries_.find({session, dataset});
  return own != entries_.end() && own->second.ranks.count(process) != 0;
}

std::span<const KeepRanks::Rank> ImportanceBook::on_read(uint32_t session, uint32_t process,
                                                         uint32_t dataset, uint64_t sample,
                                                         bool retained) {
  const auto own = entries_.find({session, dataset});
  if (own == entries_.end() || sample >= own->second.known->values.samples()) return {};
  std::map<uint32_t, Rank>& ranks = own->second.ranks;
  const auto reading = ranks.size() == 1 ? ranks.begin() : ranks.find(process);
  if (reading == ranks.end()) return {};
  KeepRanks& kept = reading->second.kept;
  const size_t promised = kept.promised(static_cast<SampleId>(sample));
  if (promised < kServedKinds) {
    const auto how = static_cast<Served>(promised);
    const bool hit = how != Served::kMiss && how != Served::kMissOther;
    if (hit && !retained) ++own->second.broken;
    ++own->second.served.by_kind[hit && !retained ? static_cast<size_t>(Served::kMiss) : promised];
  }
  return kept.on_read(static_cast<SampleId>(sample));
}

uint64_t ImportanceBook::displaced(uint32_t dataset, const Rank& rank) const {
  const auto shared = systems_.find(dataset);
  if (shared == systems_.end()) return 0;
  const Ledger* ledger = shared->second->cache().ledger(rank.number);
  return ledger != nullptr ? ledger->lost() + ledger->owed() : 0;
}

void ImportanceBook::end_rank(uint32_t dataset, Entry* own,
                              std::map<uint32_t, Rank>::iterator rank) {
  own->displaced += displaced(dataset, rank->second);
  const auto shared = systems_.find(dataset);
  if (shared != systems_.end()) {
    own->swaps = shared->second->cache().h_cache().swaps();
    shared->second->end_job(rank->second.number);
  }
  own->ranks.erase(rank);
}

void ImportanceBook::drop_unused(uint32_t dataset) {
  const bool used = std::any_of(entries_.begin(), entries_.end(), [dataset](const auto& entry) {
    return entry.first.second == dataset && !entry.second.ranks.empty();
  });
  if (!used) systems_.erase(dataset);
}

void ImportanceBook::forget_process(uint32_t session, uint32_t process) {
  for (auto& [key, own] : entries_) {
    if (key.first != session) continue;
    const auto rank = own.ranks.find(process);
    if (rank == own.ranks.end()) continue;
    end_rank(key.second, &own, rank);
    drop_unused(key.second);
  }
}

void ImportanceBook::forget_session(uint32_t session) {
  for (auto at = entries_.lower_bound({session, 0});
       at != entries_.end() && at->first.first == session;) {
    const uint32_t dataset = at->first.second;
    while (!at->second.ranks.empty()) end_rank(dataset, &at->second, at->second.ranks.begin());
    at = entries_.erase(at);
    drop_unused(dataset);
  }
}

void ImportanceBook::forget_dataset(uint32_t dataset) {
  systems_.erase(dataset);  // before the labels that it refers to
  std::erase_if(entries_, [dataset](const auto& entry) { return entry.first.second == dataset; });
}

std::vector<ImportanceBook::View> ImportanceBook::views() const {
  std::vector<View> all;
  for (const auto& [key, own] : entries_) {
    View view{.session = key.first,
              .dataset = key.second,
              .epoch = own.epoch,
              .reported = own.reported,
              .refused = own.refused,
              .known = own.known->values.known(),
              .selected = own.selected,
              .all_offered = own.all_offered,
              .all_selected = own.all_selected,
              .served = own.served,
              .broken = own.broken,
              .displaced = own.displaced,
              .swaps = own.swaps};
    const auto shared = systems_.find(key.second);
    if (shared != systems_.end() && !own.ranks.empty()) {
      for (const auto& [process, rank] : own.ranks) view.displaced += displaced(key.second, rank);
      view.benefit = shared->second->benefit(own.ranks.begin()->second.number);
      view.swaps = shared->second->cache().h_cache().swaps();
    }
    all.push_back(view);
  }
  return all;
}

}  // namespace sluice::optimizer
