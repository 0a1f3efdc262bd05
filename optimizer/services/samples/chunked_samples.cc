#include "optimizer/services/samples/chunked_samples.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "optimizer/io/log.h"
#include "policy/chunks/record_chunks.h"

namespace sluice::optimizer {

using policy::ChunkMap;
using policy::DatasetId;
using policy::Extent;
using policy::FileTable;
using policy::number;
using policy::SampleFileId;
using policy::SampleId;

ChunkedSamples::ChunkedSamples(const Service& service) : Service(service) {
  const auto may_be_read = [this] { return !stage_->disk().reads->hang(); };
  plans_->stage.companions = [this, may_be_read](SampleFileId file) {
    policy::StagePlan::Companions companions = coming_.take(file);
    return may_be_read() ? std::move(companions) : policy::StagePlan::Companions();
  };
  plans_->stage.brings = [this, may_be_read](SampleFileId file) {
    return may_be_read() && coming_.brings(file);
  };
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

ChunkedSamples::Kind ChunkedSamples::kind_of(DatasetId dataset) const {
  const policy::SampleSet* const set = plans_->samples.set(dataset);
  Kind kind = Kind::kUnknown;
  if (set == nullptr) return kind;
  set->for_each_known([&kind, set](uint64_t sample) {
    kind = policy::is_of_files(set->parts(sample)) ? Kind::kFiles : Kind::kRecords;
    return false;
  });
  return kind;
}

ChunkedSamples::Map ChunkedSamples::map_of(DatasetId dataset) {
  const auto known = found_.find(dataset);
  if (known != found_.end()) return known->second;
  const policy::SampleSet* const set = plans_->samples.set(dataset);
  if (set == nullptr) return {};
  const std::shared_ptr<ChunkStore>& store = stage_->disk().chunks.store();
  Map map;
  if (kind_of(dataset) == Kind::kRecords) {
    map = find_records(*set);
  } else if (store != nullptr) {
    map = find_files(dataset, static_cast<uint32_t>(set->samples()), *store);
  }
  if (map.chunks != nullptr) found_[dataset] = map;
  return map;
}

ChunkedSamples::Map ChunkedSamples::find_records(const policy::SampleSet& set) {
  Map map;
  map.records = true;
  std::optional<policy::RecordChunks> found = policy::record_chunks(set, policy::kChunkSamples);
  map.missing = found ? 0 : static_cast<uint32_t>(set.samples() - set.known());
  if (!found) return map;
  map.chunks = std::make_shared<const ChunkMap>(std::move(found->map));
  map.bytes = std::make_shared<const std::vector<uint32_t>>(std::move(found->bytes));
  return map;
}

ChunkedSamples::Map ChunkedSamples::find_files(DatasetId dataset, uint32_t samples,
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
          std::make_shared<const std::vector<uint32_t>>(std::move(bytes)), 0, false};
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
  if (kind_of(dataset) == Kind::kRecords) return done();
  chunks.check(paths, session.options.stage == SessionOptions::Stage::kAlways, std::move(done));
}

void ChunkedSamples::deliver(const Job& job, SampleId sample, std::span<const SampleId> package,
                             bool alone, const std::function<float(SampleId)>& priority_of) {
  const DatasetId dataset = job.dataset;
  for (const SampleId one : package.size() > 1 ? package : std::span<const SampleId>()) {
    plans_->scheduler.store().set_importance(dataset, one, priority_of(one));
  }
  if (package.size() <= 1 && coming_.empty()) return;
  const SampleFileId first = file_of(dataset, sample);
  if (first == FileTable::kNone) {
    if (package.size() > 1) {
      plans_->scheduler.store().read_together(job.session, dataset, package);
    }
    return;
  }
  if (package.size() <= 1) {
    if (alone) coming_.drop(job, first);
    return;
  }
  std::vector<SampleFileId> others;
  for (const SampleId one : package) {
    const SampleFileId file = file_of(dataset, one);
    if (file != FileTable::kNone && file != first) others.push_back(file);
  }
  coming_.add(job, first, others, plans_->importance.has_packages(dataset));
}

void ChunkedSamples::begin_epoch(const Job& job) {
  coming_.begin_epoch(job);
  plans_->scheduler.store().read_apart(job.session, job.dataset);
}

void ChunkedSamples::remove_dataset(DatasetId dataset) {
  found_.erase(dataset);
  coming_.drop_dataset(dataset);
}

}  // namespace sluice::optimizer
