#include "policy/importance/book.h"

#include <algorithm>
#include <set>

namespace sluice::policy {

ImportanceBook::Entry* ImportanceBook::entry(const Requester& requester) {
  const auto own = entries_.find({requester.session, requester.dataset});
  if (own != entries_.end()) return &own->second;
  std::shared_ptr<Known> known;
  std::set<const Known*> counted;
  uint64_t all = requester.samples;
  for (const auto& [key, other] : entries_) {
    if (key.second == requester.dataset && other.job == requester.job) known = other.known;
    if (counted.insert(other.known.get()).second) all += other.known->values.samples();
  }
  if (known == nullptr) {
    if (requester.samples > kMostSamples || all > kMostAll) return nullptr;
    known = std::make_shared<Known>(requester.samples);
  }
  Entry& created = entries_[{requester.session, requester.dataset}];
  created.job = requester.job;
  created.known = std::move(known);
  return &created;
}

ImportanceBook::Rank* ImportanceBook::rank(const Requester& requester, Entry* own,
                                           const ImportanceOptions& options) {
  const auto known = own->ranks.find(requester.process);
  if (known != own->ranks.end()) return &known->second;
  uint64_t all = requester.samples;
  for (const auto& [key, other] : entries_)
    all += other.ranks.size() * other.known->values.samples();
  if (all > kMostSelectedAll || own->ranks.size() >= kMostRanks) return nullptr;
  // Ranks of one job select with one seed.
  SelectionSettings selection = options.selection;
  selection.seed = own->known->seed.value_or(selection.seed);
  own->known->seed = selection.seed;
  std::unique_ptr<ICacheSystem>& system = systems_[requester.dataset];
  if (system == nullptr) {
    const SystemSettings settings = {.samples = static_cast<uint32_t>(requester.samples),
                                     .h_share = options.h_share,
                                     .most_substituted = options.most_substituted,
                                     .reads_packages = false,
                                     .fills = true,
                                     .looks_ahead = true,
                                     .seed = selection.seed};
    system = std::make_unique<ICacheSystem>(settings, Substitute::kL, true);
    const auto packages = packages_.find(requester.dataset);
    if (packages != packages_.end()) {
      system->set_packages(packages->second.map, packages->second.bytes);
    }
  }
  Rank& created = own->ranks[requester.process];
  created.number = next_number_++;
  using Substitution = ImportanceOptions::Substitution;
  const SelectorInfo* info = find_selector(options.selector);
  created.selector = (info != nullptr ? *info : selectors()[0]).make(selection);
  Labels labels;
  if (options.substitution == Substitution::kSameLabel) {
    std::vector<uint32_t>& all_labels = own->known->labels;
    if (all_labels.empty()) all_labels.assign(requester.samples, kUnknownLabel);
    labels = Labels(all_labels);
  }
  system->join(created.number, labels, options.substitution != Substitution::kNever, own->job,
               options.packages && options.substitution == Substitution::kAny);
  return &created;
}

bool ImportanceBook::report(const Requester& requester, uint64_t sample, double value,
                            uint32_t label) {
  Entry* const own = entry(requester);
  if (own == nullptr) return false;
  Known& known = *own->known;
  const bool good = sample < known.values.samples() &&
                    known.values.observe(static_cast<SampleId>(sample), static_cast<float>(value));
  ++(good ? own->reported : own->refused);
  const auto at = own->ranks.find(requester.process);
  if (good && at != own->ranks.end() && at->second.begun) {
    systems_.at(requester.dataset)
        ->observe(at->second.number, static_cast<SampleId>(sample), static_cast<float>(value));
  }
  if (sample < known.labels.size() && label != kUnknownLabel) known.labels[sample] = label;
  return good;
}

std::shared_ptr<EpochChoice> ImportanceBook::request(const Requester& requester, uint32_t epoch,
                                                     const ImportanceOptions& options,
                                                     std::vector<uint8_t> candidates) {
  Entry* const own = requester.samples > kMostSelected ? nullptr : entry(requester);
  Rank* const asking = own == nullptr ? nullptr : rank(requester, own, options);
  if (asking == nullptr || asking->choice != nullptr) return nullptr;
  auto choice = std::make_shared<EpochChoice>();
  choice->selector = asking->selector;
  choice->epoch = epoch;
  choice->h_share = systems_.at(requester.dataset)->h_share();
  choice->looks_ahead = true;
  const std::span<const float> values = own->known->values.all();
  choice->values.assign(values.begin(), values.end());
  choice->candidates = std::move(candidates);
  asking->choice = choice;
  return choice;
}

ImportanceBook::Rank* ImportanceBook::waiting_rank(const Requester& requester,
                                                   const std::shared_ptr<EpochChoice>& choice) {
  const auto own = entries_.find({requester.session, requester.dataset});
  if (own == entries_.end()) return nullptr;
  const auto asking = own->second.ranks.find(requester.process);
  return asking == own->second.ranks.end() || asking->second.choice != choice ? nullptr
                                                                              : &asking->second;
}

void ImportanceBook::drop(const Requester& requester, const std::shared_ptr<EpochChoice>& choice) {
  if (Rank* const asking = waiting_rank(requester, choice); asking != nullptr)
    asking->choice.reset();
}

bool ImportanceBook::begin(const Requester& requester, const std::shared_ptr<EpochChoice>& choice,
                           uint64_t capacity) {
  Rank* const asking = waiting_rank(requester, choice);
  if (asking == nullptr) return false;
  Entry& entry = entries_.at({requester.session, requester.dataset});
  Rank& rank = *asking;
  rank.choice.reset();
  rank.begun = true;
  rank.epoch = entry.epoch = choice->epoch;
  rank.requested = 0;
  entry.selected = choice->count_chosen;
  entry.all_selected += choice->count_chosen;
  entry.all_offered += choice->count_offered;
  ICacheSystem& shared = *systems_.at(requester.dataset);
  for (const SampleId sample : rank.priorities.end_epoch()) shared.drop(sample);
  shared.set_capacity(capacity);
  shared.begin_chosen(rank.number, choice.get());
  rank.priorities.begin_epoch(shared.evicted());
  return true;
}

void ImportanceBook::set_benefit(const Requester& requester, double benefit) {
  const auto own = entries_.find({requester.session, requester.dataset});
  const auto shared = systems_.find(requester.dataset);
  if (own == entries_.end() || shared == systems_.end()) return;
  const auto asking = own->second.ranks.find(requester.process);
  if (asking != own->second.ranks.end())
    shared->second->set_benefit(asking->second.number, benefit);
}

bool ImportanceBook::follows(const Requester& requester, uint32_t epoch, uint64_t first,
                             uint64_t count) {
  const auto own = entries_.find({requester.session, requester.dataset});
  if (own == entries_.end()) return false;
  const auto at = own->second.ranks.find(requester.process);
  if (at == own->second.ranks.end() || !at->second.begun || at->second.epoch != epoch ||
      at->second.requested != first || first + count > kMostRequested * requester.samples) {
    return false;
  }
  at->second.requested += count;
  return true;
}

void ImportanceBook::drop_absent(DatasetId dataset,
                                 const std::function<bool(SampleId sample)>& in_memory) {
  const auto shared = systems_.find(dataset);
  if (shared == systems_.end()) return;
  std::vector<const RetentionPriorities*> decided;
  for (const auto& [key, entry] : entries_) {
    if (key.second != dataset) continue;
    for (const auto& [process, rank] : entry.ranks) decided.push_back(&rank.priorities);
  }
  const std::vector<SampleId> retained = shared->second->retained();
  for (size_t left = std::min(retained.size(), kMostChecked); left != 0; --left, ++checked_) {
    const SampleId sample = retained[checked_ % retained.size()];
    if (in_memory(sample)) continue;
    const std::optional<SampleId> first = shared->second->comes_with(sample);
    const bool comes =
        first == kNoSample ||
        std::any_of(decided.begin(), decided.end(), [sample, first](const auto* priorities) {
          return priorities->awaits(sample) || (first && priorities->awaits(*first));
        });
    if (!comes) shared->second->drop(sample);
  }
}

Delivery ImportanceBook::deliver(const Requester& requester, SampleId requested,
                                 const BytesOf& bytes) {
  Entry& own = entries_.at({requester.session, requester.dataset});
  Rank& asking = own.ranks.at(requester.process);
  Delivery delivery{requested, DeliveryKind::kMiss};
  const uint64_t size = bytes(requested);
  ICacheSystem& shared = *systems_.at(requester.dataset);
  // A sample that was delivered as a substitute before is not delivered again, even if it cannot
  // be retained now.
  const Ledger* ledger = shared.cache().ledger(asking.number);
  if (size != 0 || (ledger != nullptr && ledger->delivered(requested))) {
    const auto known = static_cast<uint32_t>(std::clamp<uint64_t>(size, 1, UINT32_MAX));
    delivery = shared.request(asking.number, requested, known);
    const std::span<const SampleId> brought = shared.read_in_package();
    if (!brought.empty()) {
      // The one that a package is read for was not in memory.
      delivery.kind = delivery.sample == requested ? DeliveryKind::kMiss : DeliveryKind::kMissOther;
      for (auto& [key, entry] : entries_) {
        if (key.second != requester.dataset) continue;
        for (auto& [process, rank] : entry.ranks) rank.priorities.bring(brought);
      }
    }
    asking.priorities.decide(delivery.sample, shared.priority(delivery.sample), delivery.kind,
                             shared.evicted(), !brought.empty());
    return delivery;  // counted when it is read
  }
  if (ledger != nullptr) shared.deliver_itself(asking.number, requested);
  ++own.deliveries.by_kind[static_cast<size_t>(delivery.kind)];
  return delivery;
}

void ImportanceBook::set_packages(DatasetId dataset, std::shared_ptr<const ChunkMap> map,
                                  std::vector<uint32_t> bytes) {
  const auto shared = systems_.find(dataset);
  if (shared != systems_.end()) shared->second->set_packages(map, bytes);
  packages_[dataset] = {std::move(map), std::move(bytes)};
}

std::span<const SampleId> ImportanceBook::read_in_package(DatasetId dataset) const {
  const auto shared = systems_.find(dataset);
  return shared == systems_.end() ? std::span<const SampleId>() : shared->second->read_in_package();
}

float ImportanceBook::priority_of_brought(DatasetId dataset, SampleId sample) const {
  return systems_.at(dataset)->priority_of_brought(sample);
}

bool ImportanceBook::shares(SessionId session) const {
  const auto selects = [](const Entry& entry) {
    return std::any_of(entry.ranks.begin(), entry.ranks.end(),
                       [](const auto& rank) { return rank.second.begun; });
  };
  for (auto own = entries_.lower_bound({session, kNoDataset});
       own != entries_.end() && own->first.first == session; ++own) {
    if (!selects(own->second)) continue;
    for (const auto& [key, other] : entries_) {
      const bool with_it = key.second == own->first.second && other.job != own->second.job;
      if (with_it && selects(other)) return true;
    }
  }
  return false;
}

size_t ImportanceBook::ranks(SessionId session, DatasetId dataset) const {
  const auto own = entries_.find({session, dataset});
  return own == entries_.end() ? 0 : own->second.ranks.size();
}

bool ImportanceBook::is_rank(SessionId session, uint32_t process, DatasetId dataset) const {
  const auto own = entries_.find({session, dataset});
  return own != entries_.end() && own->second.ranks.count(process) != 0;
}

std::span<const RetentionPriorities::SamplePriority> ImportanceBook::on_read(
    SessionId session, uint32_t process, DatasetId dataset, uint64_t sample, bool retained) {
  const auto own = entries_.find({session, dataset});
  if (own == entries_.end() || sample >= own->second.known->values.samples()) return {};
  std::map<uint32_t, Rank>& ranks = own->second.ranks;
  const auto reading = ranks.size() == 1 ? ranks.begin() : ranks.find(process);
  if (reading == ranks.end()) return {};
  RetentionPriorities& priorities = reading->second.priorities;
  const size_t promised = priorities.promised(static_cast<SampleId>(sample));
  if (promised < kDeliveryKinds) {
    auto kind = static_cast<DeliveryKind>(promised);
    const bool hit = kind != DeliveryKind::kMiss && kind != DeliveryKind::kMissOther;
    uint64_t& broken = own->second.broken;
    if (hit && !retained) {
      kind = DeliveryKind::kMiss;
      ++broken;
    } else if (retained && priorities.reads_package(static_cast<SampleId>(sample))) {
      // The package was read earlier, for another of its samples, which counted as broken.
      kind = kind == DeliveryKind::kMiss ? DeliveryKind::kLExact : DeliveryKind::kSubstituted;
      broken -= std::min<uint64_t>(broken, 1);
    }
    ++own->second.deliveries.by_kind[static_cast<size_t>(kind)];
  }
  return priorities.on_read(static_cast<SampleId>(sample));
}

uint64_t ImportanceBook::displaced(DatasetId dataset, const Rank& rank) const {
  const auto shared = systems_.find(dataset);
  if (shared == systems_.end()) return 0;
  const Ledger* ledger = shared->second->cache().ledger(rank.number);
  return ledger != nullptr ? ledger->lost() + ledger->outstanding() : 0;
}

void ImportanceBook::end_rank(DatasetId dataset, Entry* own,
                              std::map<uint32_t, Rank>::iterator rank) {
  own->displaced += displaced(dataset, rank->second);
  const auto shared = systems_.find(dataset);
  if (shared != systems_.end()) {
    own->swaps = shared->second->cache().h_cache().swaps();
    shared->second->end_job(rank->second.number);
  }
  own->ranks.erase(rank);
}

void ImportanceBook::drop_unused(DatasetId dataset) {
  const bool used = std::any_of(entries_.begin(), entries_.end(), [dataset](const auto& entry) {
    return entry.first.second == dataset && !entry.second.ranks.empty();
  });
  if (!used) systems_.erase(dataset);
}

void ImportanceBook::remove_process(SessionId session, uint32_t process) {
  for (auto& [key, own] : entries_) {
    if (key.first != session) continue;
    const auto rank = own.ranks.find(process);
    if (rank == own.ranks.end()) continue;
    end_rank(key.second, &own, rank);
    drop_unused(key.second);
  }
}

void ImportanceBook::remove_session(SessionId session) {
  for (auto at = entries_.lower_bound({session, kNoDataset});
       at != entries_.end() && at->first.first == session;) {
    const DatasetId dataset = at->first.second;
    while (!at->second.ranks.empty()) end_rank(dataset, &at->second, at->second.ranks.begin());
    at = entries_.erase(at);
    drop_unused(dataset);
  }
}

void ImportanceBook::remove_dataset(DatasetId dataset) {
  packages_.erase(dataset);
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
              .deliveries = own.deliveries,
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

}  // namespace sluice::policy
