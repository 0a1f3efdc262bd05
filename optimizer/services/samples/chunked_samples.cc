#include "optimizer/services/samples/chunked_samples.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

using policy::ChunkMap;
using policy::DatasetId;
using policy::Extent;
using policy::FileTable;
using policy::number;
using policy::SampleFileId;
using policy::SampleId;

ChunkedSamples::ChunkedSamples(const Service& service) : Service(service) {
  plans_->stage.companions = [this](SampleFileId file) { return coming_.take(file); };
  plans_->stage.brings = [this](SampleFileId file) { return coming_.brings(file); };
}

ChunkedSamples::~ChunkedSamples() {
  plans_->stage.companions = nullptr;
  plans_->stage.brings = nullptr;
}

SampleFileId ChunkedSamples::file_of(DatasetId dataset, SampleId sample) const {
  const std::span<const Extent> parts = plans_->samples.parts(dataset, sample);
  return parts.size() == 1 && parts.front().file.is_whole() ? parts.front().file.whole()
                                                            : FileTable::kNone;
}

ChunkedSamples::Map ChunkedSamples::map_of(DatasetId dataset) {
  const auto known = found_.find(dataset);
  if (known != found_.end()) return known->second;
  const policy::SampleSet* const set = plans_->samples.set(dataset);
  const std::shared_ptr<ChunkStore>& store = stage_->disk().chunks.store();
  if (set == nullptr || store == nullptr) return {};
  Map map = find(dataset, static_cast<uint32_t>(set->samples()), *store);
  if (map.chunks != nullptr) found_[dataset] = map;
  return map;
}

ChunkedSamples::Map ChunkedSamples::find(DatasetId dataset, uint32_t samples,
                                         const ChunkStore& store) {
  std::vector<ChunkStore::Place> places(samples);
  std::vector<uint32_t> bytes(samples);
  uint32_t missing = 0;
  for (SampleId sample = 0; sample < samples; ++sample) {
    const SampleFileId file = file_of(dataset, sample);
    const auto place =
        file == FileTable::kNone ? std::nullopt : store.find(plans_->sample_files.path(file));
    missing += place ? 0 : 1;
    if (!place) continue;
    places[sample] = *place;
    plans_->sample_files.set_bytes(file, store.length(*place));
    bytes[sample] = static_cast<uint32_t>(
        std::min<uint64_t>(FileTable::charge(store.length(*place)), UINT32_MAX));
  }
  if (missing != 0) {
    Map without;
    without.missing = missing;
    return without;
  }
  std::vector<SampleId> order(samples);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&places](SampleId sample) {
    return std::pair(places[sample].chunk, places[sample].entry);
  });
  std::vector<uint32_t> begins;
  for (uint32_t at = 0; at < samples; ++at) {
    if (at == 0 || places[order[at]].chunk != places[order[at - 1]].chunk) begins.push_back(at);
  }
  return {std::make_shared<const ChunkMap>(std::move(order), begins),
          std::make_shared<const std::vector<uint32_t>>(std::move(bytes)), 0};
}

void ChunkedSamples::warn_of_missing(DatasetId dataset, const Map& map,
                                     const Session& session) const {
  const policy::SampleSet* const set = plans_->samples.set(dataset);
  say(Level::kWarn,
      "session {}: {} of {} samples are files in no chunk of {}: every sample is read as requested "
      "(`sluice chunks make`)",
      number(session.id), map.missing, set == nullptr ? 0 : set->samples(),
      session.options.cache_dir);
}

void ChunkedSamples::begin(DatasetId dataset, const Session& session, std::function<void()> done) {
  std::set<uint32_t> folders;
  const policy::SampleSet* const set = plans_->samples.set(dataset);
  for (SampleId sample = 0; set != nullptr && sample < set->samples(); ++sample) {
    const SampleFileId file = file_of(dataset, sample);
    if (file != FileTable::kNone) folders.insert(plans_->sample_files.folder(file));
  }
  std::vector<std::string> paths;
  paths.reserve(folders.size());
  for (const uint32_t folder : folders) paths.push_back(plans_->sample_files.folder_path(folder));
  CopyChunks& chunks = stage_->disk().chunks;
  chunks.supply(dataset);
  chunks.check(paths, session.options.stage == SessionOptions::Stage::kAlways, std::move(done));
}

void ChunkedSamples::deliver(const Job& job, SampleId sample, std::span<const SampleId> package,
                             bool alone, const std::function<float(SampleId)>& priority_of) {
  if (package.size() <= 1 && coming_.empty()) return;
  const DatasetId dataset = job.dataset;
  const SampleFileId first = file_of(dataset, sample);
  if (first == FileTable::kNone) return;
  if (package.size() <= 1) {
    if (alone) coming_.drop(job, first);
    return;
  }
  std::vector<SampleFileId> others;
  for (const SampleId one : package) {
    plans_->scheduler.store().set_importance(dataset, one, priority_of(one));
    const SampleFileId file = file_of(dataset, one);
    if (file != FileTable::kNone && file != first) others.push_back(file);
  }
  coming_.add(job, first, others, plans_->importance.has_packages(dataset));
}

void ChunkedSamples::remove_dataset(DatasetId dataset) {
  found_.erase(dataset);
  coming_.drop_dataset(dataset);
}

}  // namespace sluice::optimizer
