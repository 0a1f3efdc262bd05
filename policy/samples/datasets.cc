#include "policy/samples/datasets.h"

#include <algorithm>

namespace sluice::policy {

DatasetId Datasets::use(SessionId session, const std::string& name, uint64_t samples) {
  DatasetId& id = by_name_[{name, samples}];
  if (id == kNoDataset) {
    // Ids are part of samples' keys (protocol/ring.h): they wrap around, and are unique while in
    // use.
    while (datasets_.count(DatasetId{next_id_}) != 0) next_id_ = next_id_ % kMaxId + 1;
    id = DatasetId{next_id_};
    next_id_ = next_id_ % kMaxId + 1;
    datasets_.try_emplace(id, name, samples);
  }
  datasets_.at(id).sessions.insert(session);
  touch(id);
  return id;
}

// No session can use these datasets any more: requests that name one are refused.
std::vector<DatasetId> Datasets::surplus_names(const std::string& name, uint64_t samples) const {
  constexpr size_t kTogether = 64;
  if (datasets_.size() < kMaxNames || by_name_.count({name, samples}) != 0) return {};
  std::map<SessionId, size_t> of_session;
  for (const auto& [id, dataset] : datasets_) {
    for (const SessionId session : dataset.sessions) ++of_session[session];
  }
  const auto most = std::max_element(of_session.begin(), of_session.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  std::vector<std::pair<uint64_t, DatasetId>> own;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.count(most->first) != 0) own.emplace_back(dataset.last_use, id);
  }
  std::sort(own.begin(), own.end());
  own.resize(std::min(own.size(), kTogether));
  std::vector<DatasetId> ids;
  ids.reserve(own.size());
  for (const auto& [use, id] : own) ids.push_back(id);
  return ids;
}

void Datasets::leave(SessionId session) {
  std::vector<DatasetId> unused;
  for (auto& [id, dataset] : datasets_) {
    dataset.sessions.erase(session);
    if (dataset.sessions.empty()) unused.push_back(id);
  }
  for (const DatasetId id : unused) remove(id);
}

void Datasets::remove(DatasetId dataset) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  memory_.held -= at->second.set.held();
  by_name_.erase({at->second.name, at->second.set.samples()});
  datasets_.erase(at);
}

void Datasets::touch(DatasetId dataset) {
  if (Dataset* entry = find_mutable(dataset)) entry->last_use = ++uses_;
}

void Datasets::clear(DatasetId dataset, bool for_good) {
  Dataset* entry = find_mutable(dataset);
  if (entry == nullptr) return;
  change(*entry, [](SampleSet& set) { set.clear(); });
  entry->unfollowed |= for_good;
}

Datasets::Dataset* Datasets::find_mutable(DatasetId dataset) {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? nullptr : &at->second;
}

const Datasets::Dataset* Datasets::find(DatasetId dataset) const {
  const auto at = datasets_.find(dataset);
  return at == datasets_.end() ? nullptr : &at->second;
}

const Datasets::Dataset* Datasets::followed(SessionId session, DatasetId dataset) const {
  const Dataset* entry = find(dataset);
  const bool ours = entry != nullptr && !entry->unfollowed && entry->sessions.count(session) != 0;
  return ours ? entry : nullptr;
}

const std::set<SessionId>& Datasets::sessions_of(DatasetId dataset) const {
  static const std::set<SessionId> kNone;
  const Dataset* entry = find(dataset);
  return entry == nullptr ? kNone : entry->sessions;
}

std::vector<DatasetId> Datasets::only_of(SessionId session) const {
  std::vector<DatasetId> found;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.size() == 1 && *dataset.sessions.begin() == session) found.push_back(id);
  }
  return found;
}

bool Datasets::all_samples(SessionId session,
                           const std::function<bool(std::span<const Extent>)>& test) const {
  bool any = false;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.count(session) == 0) continue;
    any = true;
    if (dataset.set.known() < dataset.set.samples()) return false;
    for (uint64_t index = 0; index < dataset.set.samples(); ++index) {
      const Source source = dataset.set.source(index);
      if (source != Source::kSeen && source != Source::kDeclared) return false;
      if (!test(dataset.set.parts(index))) return false;
    }
  }
  return any;
}

template <typename Change>
void Datasets::change(Dataset& dataset, Change change) {
  memory_.held -= dataset.set.held();
  change(dataset.set);
  memory_.held += dataset.set.held();
}

bool Datasets::locate(SessionId session, DatasetId dataset, uint64_t index,
                      std::vector<Extent> parts, Source source) {
  const Dataset* entry = followed(session, dataset);
  if (entry == nullptr || index >= entry->set.samples()) return false;
  touch(dataset);
  learn(dataset, index, std::move(parts), source);
  return true;
}

// Known samples may be updated at any time; new ones are learned while there is room.
void Datasets::learn(DatasetId dataset, uint64_t index, std::vector<Extent> parts, Source source) {
  Dataset* entry = find_mutable(dataset);
  if (entry == nullptr || entry->unfollowed) return;
  if (memory_.held >= memory_.most && entry->set.parts(index).empty()) {
    memory_.refused = true;
    return;
  }
  if (source == Source::kSeen) {
    const std::span<const Extent> before = entry->set.parts(index);
    if (is_of_files(before) && entry->set.source(index) == Source::kDeclared) {
      entry->declared.seen(before, parts);
    }
  }
  memory_.more_holders |= entry->set.held() == 0;
  change(*entry, [&](SampleSet& set) { set.learn(index, std::move(parts), source); });
}

void Datasets::refine(DatasetId dataset, uint64_t index, std::vector<Extent> parts) {
  if (Dataset* entry = find_mutable(dataset)) {
    change(*entry, [&](SampleSet& set) { set.refine(index, std::move(parts)); });
  }
}

void Datasets::drop(DatasetId dataset, Source source) {
  if (Dataset* entry = find_mutable(dataset)) {
    change(*entry, [source](SampleSet& set) { set.drop(source); });
  }
}

void Datasets::was_offered(DatasetId dataset, uint64_t index, uint64_t now_ns) {
  Dataset* entry = find_mutable(dataset);
  if (entry == nullptr || !is_of_files(entry->set.parts(index))) return;
  if (entry->set.source(index) == Source::kDeclared) entry->declared.was_offered(now_ns);
}

void Datasets::opened(DatasetId dataset) {
  if (Dataset* entry = find_mutable(dataset)) entry->declared.opened();
}

bool Datasets::refuted(DatasetId dataset) {
  Dataset* entry = find_mutable(dataset);
  return entry != nullptr && entry->declared.refuted();
}

void Datasets::set_off(DatasetId dataset, bool files, bool off) {
  if (Dataset* entry = find_mutable(dataset)) entry->off[files ? 1 : 0] = off;
}

void Datasets::set_trial(DatasetId dataset, bool files, bool trial) {
  if (Dataset* entry = find_mutable(dataset)) entry->trial[files ? 1 : 0] = trial;
}

}  // namespace sluice::policy
