// The part of the book that accounts for its memory and decides which datasets are evicted.
#include <algorithm>

#include "policy/samples/sample_book.h"

namespace sluice::optimizer {
namespace {

// An epoch that was aborted leaves an order that never ends: only this many datasets, the most
// recently used, count as being read because of an unfinished order.
constexpr size_t kMostAtWork = 16;

}  // namespace

SampleBook::Dataset* SampleBook::followed(uint32_t session, uint32_t dataset) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end() || at->second.unfollowed || at->second.sessions.count(session) == 0) {
    return nullptr;
  }
  return &at->second;
}

// Known samples may be updated at any time; new ones are learned while there is room.
void SampleBook::learn_in(Dataset& dataset, uint64_t index, std::vector<Extent> parts,
                          Source source) {
  if (dataset.unfollowed) return;
  if (held_ >= most_bytes_ && dataset.set.parts(index).empty()) {
    refused_ = true;
    return;
  }
  more_holders_ |= dataset.set.held() == 0;
  held_ -= dataset.set.held();
  dataset.set.learn(index, std::move(parts), source);
  held_ += dataset.set.held();
}

std::optional<SampleBook::Surplus> SampleBook::surplus(uint64_t more) const {
  if (more > most_bytes_) more = 0;  // there will never be room
  const bool too_large = held_ + more > most_bytes_ || (refused_ && held_ >= most_bytes_);
  if (!too_large && !more_holders_) return std::nullopt;
  struct Holder {
    uint32_t dataset = 0;
    const Dataset* entry = nullptr;
    uint64_t bytes = 0;
    bool unfinished = false;
  };
  std::map<uint32_t, Holder> by_id;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.set.held() != 0) by_id[id] = {id, &dataset, dataset.set.held(), false};
  }
  for (const auto& [key, job] : jobs_) {
    Holder& holder = by_id[key.second];
    holder.dataset = key.second;
    holder.entry = &datasets_.at(key.second);
    holder.bytes += job.held;
    holder.unfinished |= job.order.unfinished();
  }
  std::vector<Holder> holders;
  std::map<uint32_t, size_t> of_session;
  for (const auto& [id, holder] : by_id) {
    holders.push_back(holder);
    for (const uint32_t session : holder.entry->sessions) ++of_session[session];
  }
  std::sort(holders.begin(), holders.end(),
            [](const Holder& a, const Holder& b) { return a.entry->last_use < b.entry->last_use; });
  const auto first = [&](const auto& which) -> std::optional<Surplus> {
    for (size_t at = 0; at < holders.size(); ++at) {
      const bool at_work = at + kMostAtWork >= holders.size() && holders[at].unfinished;
      if (!at_work && which(holders[at])) return Surplus{holders[at].dataset, false};
    }
    return std::nullopt;
  };
  if (too_large && !holders.empty()) {
    // The room is needed for the dataset that was used last.
    const uint32_t last = holders.back().dataset;
    if (const auto idle = first([last](const Holder& one) { return one.dataset != last; })) {
      return idle;
    }
    const auto largest =
        std::max_element(holders.begin(), holders.end(),
                         [](const Holder& a, const Holder& b) { return a.bytes < b.bytes; });
    // A dataset that is being read is evicted only for one that takes less.
    if (largest->bytes < more) return std::nullopt;
    return Surplus{largest->dataset, true};
  }
  for (const auto& held : of_session) {
    if (held.second <= kMaxOfSession) continue;
    const auto idle =
        first([&](const Holder& one) { return one.entry->sessions.count(held.first) != 0; });
    if (idle) return idle;
  }
  if (holders.size() <= kMaxDatasets) {
    more_holders_ = false;
    return std::nullopt;
  }
  return first([](const Holder&) { return true; });
}

void SampleBook::touch(uint32_t dataset) {
  const auto at = datasets_.find(dataset);
  if (at != datasets_.end()) at->second.last_use = ++uses_;
}

void SampleBook::release(const Surplus& surplus) {
  const auto at = datasets_.find(surplus.dataset);
  if (at == datasets_.end()) return;
  clear(at->second);
  erase_jobs([&](const auto& key) { return key.second == surplus.dataset; });
  ++changes_;
  refused_ = false;
  at->second.unfollowed |= surplus.for_good;
}

void SampleBook::clear(Dataset& dataset) {
  held_ -= dataset.set.held();
  dataset.set.clear();
}

void SampleBook::erase_jobs(
    const std::function<bool(const std::pair<uint32_t, uint32_t>&)>& which) {
  std::erase_if(jobs_, [&](const auto& entry) {
    if (!which(entry.first)) return false;
    held_ -= entry.second.held;
    return true;
  });
}

void SampleBook::forget_order(uint32_t session, uint32_t dataset) {
  ++changes_;
  erase_jobs([&](const auto& key) { return key == std::pair(session, dataset); });
}

// Ids are part of samples' keys (protocol/ring.h): they wrap around, and are unique while in use.
uint32_t SampleBook::new_id() {
  while (datasets_.count(next_id_) != 0) next_id_ = next_id_ % kMaxId + 1;
  const uint32_t id = next_id_;
  next_id_ = next_id_ % kMaxId + 1;
  return id;
}

// No session can use these datasets any more: requests that name one are refused.
void SampleBook::drop_names() {
  constexpr size_t kTogether = 64;
  std::map<uint32_t, size_t> of_session;
  for (const auto& [id, dataset] : datasets_) {
    for (const uint32_t session : dataset.sessions) ++of_session[session];
  }
  const auto most = std::max_element(of_session.begin(), of_session.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  std::vector<std::pair<uint64_t, uint32_t>> own;
  for (const auto& [id, dataset] : datasets_) {
    if (dataset.sessions.count(most->first) != 0) own.emplace_back(dataset.last_use, id);
  }
  std::sort(own.begin(), own.end());
  own.resize(std::min(own.size(), kTogether));
  for (const auto& [use, id] : own) {
    release({id, false});
    const auto at = datasets_.find(id);
    by_name_.erase({at->second.name, at->second.set.samples()});
    datasets_.erase(at);
  }
}

}  // namespace sluice::optimizer
