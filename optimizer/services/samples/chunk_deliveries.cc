#include "optimizer/services/samples/chunk_deliveries.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/io/memory_file.h"

namespace sluice::optimizer {

using policy::ChunkMap;
using policy::ChunkSupply;
using policy::DatasetId;
using policy::DeliveryKind;
using policy::Extent;
using policy::FileTable;
using policy::number;
using policy::SampleFileId;
using policy::SampleId;
using policy::SessionId;
using protocol::MessageKind;
namespace {

// What is retained where no next read is known yet: what a chunk has brought for this epoch comes
// before what stays for the next one.
constexpr float kBrought = 2, kHeld = 1, kSpent = 0;
constexpr uint64_t kPatienceNs = 2 * kSecond;

DeliveryKind kind_of(SampleId requested, const ChunkSupply::Delivery& delivery) {
  if (delivery.in_memory) {
    return requested == delivery.sample ? DeliveryKind::kLExact : DeliveryKind::kSubstituted;
  }
  return requested == delivery.sample ? DeliveryKind::kMiss : DeliveryKind::kMissOther;
}

}  // namespace

ChunkDeliveries::ChunkDeliveries(const Service& service) : Service(service) {
  plans_->stage.companions = [this](SampleFileId file) {
    auto known = companions_.extract(file);
    return known.empty() ? std::vector<SampleFileId>() : std::move(known.mapped());
  };
}

ChunkDeliveries::~ChunkDeliveries() { plans_->stage.companions = nullptr; }

void ChunkDeliveries::handle(const Peer& peer, const Session& session,
                             const ImportanceMessage& message, UniqueFd memory) {
  const protocol::Samples& request = message.samples;
  const Key key{session.id, DatasetId{request.dataset}, peer.pid};
  if (message.kind == MessageKind::kSelect) {
    if (!select(peer.connection, key, session, request, std::move(memory))) {
      base_->server.refuse(peer.connection, "not all samples of the dataset");
    }
  } else if (message.kind == MessageKind::kDeliver && deliver(key, request, memory.get())) {
    base_->server.send(peer.connection, MessageKind::kDone, {});
  } else {
    base_->server.refuse(peer.connection, "invalid request for samples of chunks");
  }
}

void ChunkDeliveries::tick() {
  std::vector<uint64_t> late;
  for (const auto& [connection, selecting] : selecting_) {
    base_->server.send(connection, MessageKind::kWorking, {});
    if (selecting.until_ns != 0 && now_ns() > selecting.until_ns) late.push_back(connection);
  }
  for (const uint64_t connection : late) begin_epoch(connection);
}

// True: the answer is sent later.
bool ChunkDeliveries::select(uint64_t connection, const Key& key, const Session& session,
                             const protocol::Samples& request, UniqueFd memory) {
  std::vector<uint8_t> candidates(request.count);
  if (request.count > kMostSamples || !stage_->exists() || !session.may_stage() ||
      !read_memory(memory.get(), candidates.data(), candidates.size()) ||
      std::ranges::count(candidates, uint8_t{0}) != 0) {
    return false;
  }
  base_->server.send(connection, MessageKind::kWorking, {});
  selecting_[connection] = {connection, key, request, std::make_shared<UniqueFd>(std::move(memory)),
                            0};
  stage_->disk().chunks.use(session.options.cache_dir, [this, connection] {
    // The previous epoch is complete once the events of its last reads have been handled.
    sessions_->after_events([this, connection] {
      const auto at = selecting_.find(connection);
      if (at != selecting_.end()) opened(at->second);
    });
  });
  return true;
}

// The first epoch of a job begins once its originals were compared with what was packed, folder by
// folder, or when that takes long: then each is compared by itself.
void ChunkDeliveries::opened(const Selecting& selecting) {
  const Session* const session = sessions_->find(selecting.key.session);
  std::vector<std::string> paths;
  if (session != nullptr && !jobs_.contains(selecting.key) && jobs_.size() < kMostJobs) {
    Job job;
    job.supply = make(selecting.key, *session, selecting.request.first);
    if (job.supply != nullptr) {
      job.held.resize(job.supply->samples());
      stage_->disk().chunks.supply(selecting.key.dataset);
      paths = folders_of(selecting.key.dataset, job.supply->samples());
    }
    jobs_.emplace(selecting.key, std::move(job));
  }
  selecting_[selecting.connection].until_ns = now_ns() + kPatienceNs;
  const bool any_mount =
      session != nullptr && session->options.stage == SessionOptions::Stage::kAlways;
  stage_->disk().chunks.check(
      paths, any_mount, [this, connection = selecting.connection] { begin_epoch(connection); });
}

std::vector<std::string> ChunkDeliveries::folders_of(DatasetId dataset, uint32_t samples) const {
  std::set<uint32_t> folders;
  for (SampleId sample = 0; sample < samples; ++sample) {
    const SampleFileId file = file_of(dataset, sample);
    if (file != FileTable::kNone) folders.insert(plans_->sample_files.folder(file));
  }
  std::vector<std::string> paths;
  paths.reserve(folders.size());
  for (const uint32_t folder : folders) paths.push_back(plans_->sample_files.folder_path(folder));
  return paths;
}

void ChunkDeliveries::begin_epoch(uint64_t connection) {
  const auto waiting = selecting_.extract(connection);
  if (waiting.empty() || !base_->server.connected(connection)) return;
  const auto& [unused, key, request, memory, until_ns] = waiting.mapped();
  const auto found = jobs_.find(key);
  const std::vector<uint8_t> all(request.count, 1);
  if (found == jobs_.end() || found->second.supply == nullptr ||
      found->second.supply->samples() != request.count ||
      !write_memory(memory->get(), all.data(), all.size())) {
    base_->server.refuse(connection, "the samples are not all in chunks");
    return;
  }
  Job& job = found->second;
  job.supply->begin_epoch();
  job.epoch = request.epoch;
  job.requested = 0;
  base_->server.send(connection, MessageKind::kDone, {});
}

SampleFileId ChunkDeliveries::file_of(DatasetId dataset, SampleId sample) const {
  const std::span<const Extent> parts = plans_->samples.parts(dataset, sample);
  return parts.size() == 1 && parts.front().file.is_whole() ? parts.front().file.whole()
                                                            : FileTable::kNone;
}

std::unique_ptr<ChunkSupply> ChunkDeliveries::make(const Key& key, const Session& session,
                                                   uint64_t seed) {
  const policy::SampleSet* const set = plans_->samples.set(key.dataset);
  const std::shared_ptr<ChunkStore>& store = stage_->disk().chunks.store();
  if (set == nullptr || store == nullptr) return nullptr;
  const auto samples = static_cast<uint32_t>(set->samples());
  std::vector<ChunkStore::Place> places(samples);
  std::vector<uint32_t> bytes(samples);
  uint32_t missing = 0;
  for (SampleId sample = 0; sample < samples; ++sample) {
    const SampleFileId file = file_of(key.dataset, sample);
    const auto place =
        file == FileTable::kNone ? std::nullopt : store->find(plans_->sample_files.path(file));
    missing += place ? 0 : 1;
    if (!place) continue;
    places[sample] = *place;
    plans_->sample_files.set_bytes(file, store->length(*place));
    bytes[sample] = static_cast<uint32_t>(
        std::min<uint64_t>(FileTable::charge(store->length(*place)), UINT32_MAX));
  }
  if (missing != 0) {
    say(Level::kWarn,
        "session {}: {} of {} samples are files in no chunk of {}: every sample is read as "
        "requested (`sluice chunks make`)",
        number(key.session), missing, samples, session.options.cache_dir);
    return nullptr;
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
  return std::make_unique<ChunkSupply>(*session.options.chunks, ChunkMap(std::move(order), begins),
                                       std::move(bytes), plans_->stage.room().retainable(), seed);
}

void ChunkDeliveries::note_load(const Key& key, std::span<const SampleId> loaded) {
  const SampleFileId first = file_of(key.dataset, loaded.front());
  if (first == FileTable::kNone) return;
  std::vector<SampleFileId>& others = companions_[first];
  others.clear();
  for (const SampleId sample : loaded) {
    plans_->scheduler.store().set_importance(key.dataset, sample, kBrought);
    const SampleFileId file = file_of(key.dataset, sample);
    if (file != FileTable::kNone && file != first) others.push_back(file);
  }
}

// Decided in advance, by what will be in memory by then, as of Importance.
bool ChunkDeliveries::deliver(const Key& key, const protocol::Samples& request, int memory) {
  const auto found = jobs_.find(key);
  std::vector<uint32_t> samples(request.count);
  if (found == jobs_.end() || found->second.supply == nullptr ||
      !read_memory(memory, samples.data(), request.bytes)) {
    return false;
  }
  Job& job = found->second;
  if (request.epoch != job.epoch || request.first != job.requested ||
      std::ranges::any_of(samples, [&](uint32_t one) { return one >= job.supply->samples(); })) {
    return false;
  }
  job.requested += request.count;
  for (uint32_t& sample : samples) {
    const ChunkSupply::Delivery delivery = job.supply->request(sample);
    if (delivery.loaded.size() > 1) note_load(key, delivery.loaded);
    job.held[delivery.sample] = delivery.held;
    sample = delivery.sample | static_cast<uint32_t>(kind_of(sample, delivery))
                                   << protocol::kDeliveryShift;
  }
  return write_memory(memory, samples.data(), request.bytes);
}

void ChunkDeliveries::on_read(SessionId owner, DatasetId dataset, uint64_t index) {
  for (auto at = jobs_.lower_bound({owner, dataset, 0});
       at != jobs_.end() && at->first.session == owner && at->first.dataset == dataset; ++at) {
    const Job& job = at->second;
    if (index >= job.held.size()) continue;
    plans_->scheduler.store().set_importance(dataset, static_cast<SampleId>(index),
                                             job.held[index] ? kHeld : kSpent);
  }
}

template <typename Test>
void ChunkDeliveries::remove_if(Test test) {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto next = std::next(at);
    if (test(at->first)) {
      if (at->second.supply != nullptr) ended_.push_back(view_of(at->first, at->second));
      if (ended_.size() > kMostEnded) ended_.pop_front();
      jobs_.erase(at);
    }
    at = next;
  }
  if (jobs_.empty()) companions_.clear();
}

void ChunkDeliveries::remove_process(SessionId session, uint32_t process) {
  remove_if([=](const Key& key) { return key.session == session && key.process == process; });
}

void ChunkDeliveries::remove_session(SessionId session) {
  remove_if([session](const Key& key) { return key.session == session; });
}

void ChunkDeliveries::remove_dataset(DatasetId dataset) {
  remove_if([dataset](const Key& key) { return key.dataset == dataset; });
}

ChunkDeliveries::View ChunkDeliveries::view_of(const Key& key, const Job& job) {
  return {key.session, key.dataset, job.supply->chunks(), job.supply->counts()};
}

std::vector<ChunkDeliveries::View> ChunkDeliveries::views() const {
  std::vector<View> all(ended_.begin(), ended_.end());
  for (const auto& [key, job] : jobs_) {
    if (job.supply != nullptr) all.push_back(view_of(key, job));
  }
  return all;
}

}  // namespace sluice::optimizer
