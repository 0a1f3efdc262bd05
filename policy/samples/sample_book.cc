#include "policy/samples/sample_book.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::policy {
namespace {

// An epoch that was aborted leaves an order that never ends: only this many datasets, the most
// recently used, count as being read because of an unfinished order.
constexpr size_t kMostAtWork = 16;

const FileTable* no_files() {
  static const FileTable kNone;
  return &kNone;
}

}  // namespace

SampleBook::SampleBook(const FileTable* files) : orders_(&datasets_, files, &memory_) {
  begun_.on_lost = [this](const BegunSamples::Begun& begun) {
    if (begun.ahead) orders_.take(begun.session, begun.dataset, begun.index);
  };
}

SampleBook::SampleBook() : SampleBook(no_files()) {}

DatasetId SampleBook::use(SessionId session, const std::string& name, uint64_t samples) {
  for (const DatasetId dataset : datasets_.surplus_names(name, samples)) {
    release({dataset, false});
    datasets_.remove(dataset);
  }
  return datasets_.use(session, name, samples);
}

void SampleBook::leave(SessionId session) {
  groups_.remove_session(session);
  begun_.remove_session(session);
  orders_.leave(session);
  datasets_.leave(session);
}

std::vector<SampleBook::Holder> SampleBook::holders() const {
  std::map<DatasetId, Holder> by_id;
  for (const auto& [id, dataset] : datasets_.all()) {
    if (dataset.set.held() != 0) by_id[id] = {id, &dataset, dataset.set.held(), false};
  }
  for (const auto& [key, job] : orders_.all()) {
    Holder& holder = by_id[key.second];
    holder.dataset = key.second;
    holder.entry = datasets_.find(key.second);
    holder.bytes += job.held;
    holder.unfinished |= job.order.unfinished();
  }
  std::vector<Holder> all;
  all.reserve(by_id.size());
  for (const auto& [id, holder] : by_id) all.push_back(holder);
  std::sort(all.begin(), all.end(),
            [](const Holder& a, const Holder& b) { return a.entry->last_use < b.entry->last_use; });
  return all;
}

std::optional<SampleBook::Surplus> SampleBook::surplus(uint64_t more) {
  if (more > memory_.most) more = 0;  // there will never be room
  const bool too_large =
      memory_.held + more > memory_.most || (memory_.refused && memory_.held >= memory_.most);
  if (!too_large && !memory_.more_holders) return std::nullopt;
  const std::vector<Holder> holders = this->holders();
  const auto first = [&](const auto& which) -> std::optional<Surplus> {
    for (size_t at = 0; at < holders.size(); ++at) {
      const bool at_work = at + kMostAtWork >= holders.size() && holders[at].unfinished;
      if (!at_work && which(holders[at])) return Surplus{holders[at].dataset, false};
    }
    return std::nullopt;
  };
  if (too_large && !holders.empty()) {
    // The room is needed for the dataset that was used last.
    const DatasetId last = holders.back().dataset;
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
  std::map<SessionId, size_t> of_session;
  for (const Holder& holder : holders) {
    for (const SessionId session : holder.entry->sessions) ++of_session[session];
  }
  for (const auto& held : of_session) {
    if (held.second <= kMaxOfSession) continue;
    const auto idle =
        first([&](const Holder& one) { return one.entry->sessions.count(held.first) != 0; });
    if (idle) return idle;
  }
  if (holders.size() <= kMaxDatasets) {
    memory_.more_holders = false;
    return std::nullopt;
  }
  return first([](const Holder&) { return true; });
}

void SampleBook::release(const Surplus& surplus) {
  if (datasets_.find(surplus.dataset) == nullptr) return;
  datasets_.clear(surplus.dataset, surplus.for_good);
  orders_.remove_dataset(surplus.dataset);
  memory_.refused = false;
}

bool SampleBook::publish(SessionId session, DatasetId dataset, uint32_t epoch, uint64_t first,
                         std::span<const uint32_t> indices, bool tentative) {
  const Datasets::Dataset* entry = datasets_.followed(session, dataset);
  if (entry == nullptr) return false;
  const uint64_t samples = entry->set.samples();
  if (std::any_of(indices.begin(), indices.end(), [&](uint32_t i) { return i >= samples; }) ||
      !orders_.publish(session, dataset, epoch, first, indices, tentative)) {
    return false;
  }
  datasets_.touch(dataset);
  return true;
}

const SampleSet* SampleBook::set(DatasetId dataset) const {
  const Datasets::Dataset* entry = datasets_.find(dataset);
  return entry == nullptr ? nullptr : &entry->set;
}

std::span<const Extent> SampleBook::parts(DatasetId dataset, uint64_t index) const {
  const SampleSet* known = set(dataset);
  return known == nullptr ? std::span<const Extent>() : known->parts(index);
}

std::span<const Extent> SampleBook::begin(SessionId session, uint64_t reader, DatasetId dataset,
                                          uint64_t index) {
  const Datasets::Dataset* entry = datasets_.followed(session, dataset);
  if (entry == nullptr || index >= entry->set.samples()) return {};
  datasets_.touch(dataset);
  const bool random = orders_.is_random(session, dataset);
  const bool ahead = begun_.reads(reader);
  if (!ahead) orders_.take(session, dataset, index, reader);
  begun_.begin(reader, {session, dataset, index, random, ahead, {}});
  return entry->set.parts(index);
}

bool SampleBook::end(uint64_t reader, DatasetId dataset, uint64_t index) {
  BegunSamples::Begun begun;
  if (!begun_.end(reader, dataset, index, &begun)) return false;
  if (begun.ahead) orders_.take(begun.session, dataset, index, reader, true);
  const SampleSet* known = set(dataset);
  // Nothing seen: the sample came from the job's own memory, or from files that are not followed.
  // What was learned before stays valid.
  if (known == nullptr || begun.parts.empty()) return true;
  const std::span<const Extent> before = known->parts(index);
  // Pages are less precise than what the job declared, or what an earlier run saw exactly.
  const bool exact = !before.empty() && known->source(index) != Source::kSeen &&
                     known->source(index) != Source::kGuessed;
  merge_neighbours(&begun.parts);
  if (exact && is_coarser(begun.parts, before)) begun.parts = {before.begin(), before.end()};
  datasets_.learn(dataset, index, std::move(begun.parts), Source::kSeen);
  return true;
}

void SampleBook::for_each_ahead(const std::function<void(const Extent&)>& visit) const {
  orders_.for_each_ahead([&visit](const Extent& part, bool) { visit(part); });
  begun_.for_each([&](const BegunSamples::Begun& begun) {
    for (const Extent& part : parts(begun.dataset, begun.index)) visit(part);
  });
}

UpcomingFiles SampleBook::upcoming_files() const {
  UpcomingFiles files;
  const auto add = [&files](const Extent& part, bool judged) {
    if (judged && part.file.is_whole()) files.readers.push_back(part.file.whole());
  };
  orders_.for_each_ahead(add, false);  // an order that was left has none
  begun_.for_each([&](const BegunSamples::Begun& begun) {
    if (begun.ahead) return;  // it is in the order, and counted there
    for (const Extent& part : parts(begun.dataset, begun.index)) {
      if (!part.file.is_whole()) continue;
      files.readers.push_back(part.file.whole());
      files.order.push_back(part.file.whole());
    }
  });
  const std::vector<SampleFileId> order = orders_.upcoming_files();
  files.order.insert(files.order.end(), order.begin(), order.end());
  return files;
}

std::optional<SampleBook::Following> SampleBook::following(SessionId session,
                                                           DatasetId dataset) const {
  const Datasets::Dataset* entry = datasets_.find(dataset);
  if (entry == nullptr) return std::nullopt;
  Following found{entry->name, entry->set.samples()};
  if (const auto owner = orders_.running(session, dataset)) {
    found.session = owner->session;
    found.epoch = owner->epoch;
  }
  return found;
}

std::vector<SampleBook::View> SampleBook::views() const {
  std::vector<View> out;
  for (const auto& [id, dataset] : datasets_.all()) {
    View view;
    view.dataset = id;
    view.name = dataset.name;
    view.samples = dataset.set.samples();
    view.known = dataset.set.known();
    bool any = false;
    for (const auto& [key, job] : orders_.all()) {
      if (key.second != id) continue;
      view.session = key.first;
      view.epoch = job.order.epoch();
      view.order = job.order.size();
      view.taken = job.order.taken();
      view.ahead_bytes = job.order.ahead_bytes();
      out.push_back(view);
      any = true;
    }
    if (!any) out.push_back(view);
  }
  return out;
}

}  // namespace sluice::policy
