#include "optimizer/services/samples/stored_locations.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/io/place_store.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::Extent;
using policy::FileId;
using policy::FileTable;
using policy::kNoFile;
using policy::PlaceList;
using policy::SampleFileId;
using policy::SampleSet;
using policy::SessionId;
using policy::Source;
using policy::whole_file;
namespace {

constexpr uint64_t kWorthStoring = 16;  // samples with newly seen locations

}  // namespace

void StoredLocations::use(DatasetId dataset, const std::string& folder, const std::string& name,
                          uint64_t samples) {
  const auto [at, fresh] = datasets_.try_emplace(dataset);
  if (!fresh) return;
  at->second.folder = folder;
  at->second.name = name;
  at->second.samples = samples;
  if (folder.empty()) return;
  base_->executor.run(
      mount_key(folder), [this, mailbox = base_->loop.mailbox(), dataset, folder, name, samples] {
        std::string problem;
        auto places = PlaceStore{folder}.load(name, samples, &problem);
        if (!problem.empty()) say(Level::kWarn, "locations of an earlier run: {}", problem);
        if (!places) return;
        auto found = std::make_shared<PlaceList>(std::move(*places));
        mailbox->post([this, dataset, found] { loaded(dataset, std::move(*found)); });
      });
}

void StoredLocations::loaded(DatasetId dataset, PlaceList places) {
  const auto at = datasets_.find(dataset);
  if (at == datasets_.end()) return;
  say(Level::kInfo, "{} parts of samples are known from an earlier run: {}", places.parts.size(),
      places.name);
  at->second.pending = std::move(places);
  settle(dataset);
}

const FileEntry* StoredLocations::followed(const PlaceList::File& file) const {
  for (const auto& [id, entry] : files_->all()) {
    if (entry.state == FileEntry::State::kReady && entry.path == file.path &&
        entry.size == file.size && entry.modified_ns == file.modified_ns) {
      return &entry;
    }
  }
  return nullptr;
}

// A sample's location is learned once all its followed files can be read.
void StoredLocations::settle(DatasetId dataset) {
  PlaceList& pending = datasets_.at(dataset).pending;
  std::vector<FileId> ids;
  for (const PlaceList::File& file : pending.files) {
    const FileEntry* entry = followed(file);
    ids.push_back(entry != nullptr ? entry->id : kNoFile);
  }
  std::vector<SampleFileId> whole;  // interned on demand
  whole.resize(pending.whole.size());
  std::vector<PlaceList::Part> waiting;
  std::vector<Extent> parts;
  for (size_t at = 0, next = 0; at < pending.parts.size(); at = next) {
    bool ready = true;
    parts.clear();
    for (next = at;
         next < pending.parts.size() && pending.parts[next].sample == pending.parts[at].sample;
         ++next) {
      const PlaceList::Part& part = pending.parts[next];
      if (part.whole == 0) {
        ready &= ids[part.file] != kNoFile;
        parts.push_back({part.offset, part.length, ids[part.file]});
        continue;
      }
      SampleFileId& file = whole[part.file];
      if (file == FileTable::kNone) file = plans_->sample_files.intern(pending.whole[part.file]);
      if (file != FileTable::kNone) parts.push_back(whole_file(file));
    }
    if (ready) {
      plans_->samples.datasets().learn(dataset, pending.parts[at].sample, parts, Source::kStored);
    } else {
      waiting.insert(waiting.end(), pending.parts.begin() + static_cast<ptrdiff_t>(at),
                     pending.parts.begin() + static_cast<ptrdiff_t>(next));
    }
  }
  const bool more = waiting.size() < pending.parts.size();
  pending.parts = std::move(waiting);
  if (more) plans_->orders_changed = true;
}

void StoredLocations::file_ready(const FileEntry& file) {
  // Also remembered for later: locations may be stored after no session follows the file any more.
  seen_files_[file.id] = {file.path, file.size, file.modified_ns};
  for (auto& [id, dataset] : datasets_) {
    if (dataset.pending.parts.empty()) continue;
    for (const PlaceList::File& known : dataset.pending.files) {
      if (known.path != file.path) continue;
      settle(id);
      break;
    }
  }
}

// Preserves loaded locations in files that were not opened in this run, except where the file was
// opened and has changed.
void StoredLocations::add_pending(const PlaceList& pending, const SampleSet& set, PlaceList* list) {
  std::vector<bool> stale;
  for (const PlaceList::File& file : pending.files) {
    stale.push_back(std::any_of(list->files.begin(), list->files.end(),
                                [&](const auto& known) { return known.path == file.path; }));
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> places;
  for (PlaceList::Part part : pending.parts) {
    if (!set.parts(part.sample).empty() || (part.whole == 0 && stale[part.file])) continue;
    const auto next =
        static_cast<uint32_t>(part.whole != 0 ? list->whole.size() : list->files.size());
    const auto [at, fresh] = places.try_emplace({part.whole, part.file}, next);
    if (fresh && part.whole != 0) list->whole.push_back(pending.whole[part.file]);
    if (fresh && part.whole == 0) list->files.push_back(pending.files[part.file]);
    part.file = at->second;
    list->parts.push_back(part);
  }
}

PlaceList StoredLocations::learned(const Dataset& dataset, const SampleSet& set) const {
  PlaceList list;
  list.name = dataset.name;
  list.samples = dataset.samples;
  std::unordered_map<FileId, uint32_t> files;              // places in list.files
  std::unordered_map<SampleFileId, uint32_t> whole_files;  // in list.whole
  set.for_each_known([&](uint64_t index) {
    if (set.source(index) > Source::kStored) return true;
    const std::span<const Extent> parts = set.parts(index);
    const size_t before = list.parts.size();
    for (const Extent& part : parts) {
      uint32_t place = 0;
      const bool is_whole = part.file.is_whole();
      if (is_whole) {
        const SampleFileId whole = part.file.whole();
        if (plans_->sample_files.unfit(whole)) continue;
        const auto next = static_cast<uint32_t>(list.whole.size());
        const auto [at, fresh] = whole_files.try_emplace(whole, next);
        if (fresh) list.whole.push_back(plans_->sample_files.path(whole));
        place = at->second;
      } else {
        const auto known = seen_files_.find(part.file.followed());
        if (known == seen_files_.end()) {
          list.parts.resize(before);  // store no incomplete samples
          break;
        }
        const auto next = static_cast<uint32_t>(list.files.size());
        const auto [at, fresh] = files.try_emplace(known->first, next);
        if (fresh) list.files.push_back(known->second);
        place = at->second;
      }
      list.parts.push_back(
          {part.offset, part.length, static_cast<uint32_t>(index), place, is_whole ? 1U : 0U});
    }
    return true;
  });
  add_pending(dataset.pending, set, &list);
  return list;
}

void StoredLocations::leave(SessionId session) {
  for (const DatasetId id : plans_->samples.datasets().only_of(session)) release(id);
  if (datasets_.empty()) {
    std::erase_if(seen_files_, [this](const auto& e) { return files_->find(e.first) == nullptr; });
  }
}

void StoredLocations::release(DatasetId id) {
  const auto at = datasets_.find(id);
  const SampleSet* set = plans_->samples.set(id);
  if (at == datasets_.end() || set == nullptr) return;
  const Dataset dataset = std::move(at->second);
  datasets_.erase(at);
  if (dataset.folder.empty() || set->news() < std::min(kWorthStoring, set->samples())) return;
  auto list = std::make_shared<const PlaceList>(learned(dataset, *set));
  ++saving_;
  base_->executor.run(mount_key(dataset.folder),
                      [this, mailbox = base_->loop.mailbox(), folder = dataset.folder, list] {
                        std::string problem;
                        if (PlaceStore{folder}.save(*list, &problem)) {
                          say(Level::kInfo, "{} parts of samples are stored for the next run: {}",
                              list->parts.size(), list->name);
                        } else {
                          say(Level::kWarn, "locations are not stored: {}", problem);
                        }
                        mailbox->post([this] { --saving_; });
                      });
}

}  // namespace sluice::optimizer
