#include "optimizer/services/samples/chunk_deliveries.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "optimizer/io/log.h"
#include "optimizer/io/memory_file.h"

namespace sluice::optimizer {

using policy::ChunkPart;
using policy::ChunkSupply;
using policy::DatasetId;
using policy::DeliveryKind;
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

ChunkDeliveries::ChunkDeliveries(const Service& service, ChunkedSamples* chunked)
    : Service(service), chunked_(chunked) {}

void ChunkDeliveries::handle(const Peer& peer, Session& session, const ImportanceMessage& message,
                             UniqueFd memory) {
  const protocol::Samples& request = message.samples;
  const Key key{session.id, DatasetId{request.dataset}, peer.pid, request.rank,
                std::max<uint32_t>(request.ranks.all, 1)};
  if (message.kind == MessageKind::kSelect) {
    if (!select(peer.connection, key, session, request, std::move(memory))) {
      base_->server.refuse(peer.connection, "not all samples of the dataset");
    }
  } else if (message.kind == MessageKind::kDeliver &&
             deliver(key, session, request, memory.get())) {
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
  if (!late.empty()) stage_->disk().chunks.late();
  for (const uint64_t connection : late) begin_epoch(connection);
}

// True: the answer is sent later.
bool ChunkDeliveries::select(uint64_t connection, const Key& key, const Session& session,
                             const protocol::Samples& request, UniqueFd memory) {
  std::vector<uint8_t> candidates(request.count);
  if (request.count > kMostSamples || !session.options.prefetch ||
      !read_memory(memory.get(), candidates.data(), candidates.size()) ||
      std::ranges::count(candidates, uint8_t{0}) != 0) {
    return false;
  }
  base_->server.send(connection, MessageKind::kWorking, {});
  selecting_[connection] = {connection, key, request, std::make_shared<UniqueFd>(std::move(memory)),
                            0};
  const auto ready = [this, connection] {
    // The previous epoch is complete once the events of its last reads have been handled.
    sessions_->after_events([this, connection] {
      const auto at = selecting_.find(connection);
      if (at != selecting_.end()) opened(at->second);
    });
  };
  const ChunkedSamples::Kind kind = chunked_->kind_of(key.dataset);
  if (may_use_files(session) && kind != ChunkedSamples::Kind::kRecords) {
    const bool surely = kind == ChunkedSamples::Kind::kFiles;
    stage_->disk().chunks.use(session.options.cache_dir,
                              surely ? CopyChunks::Wanted::kSurely : CopyChunks::Wanted::kIfAny,
                              ready);
    const auto at = selecting_.find(connection);
    const uint64_t deadline = stage_->disk().chunks.deadline_ns();
    if (at != selecting_.end() && deadline != 0) at->second.until_ns = deadline;
  } else {
    ready();
  }
  return true;
}

// The first epoch of a job begins once its originals were compared with what was packed, or when
// that takes long: then each is compared by itself.
void ChunkDeliveries::opened(const Selecting& selecting) {
  const uint64_t connection = selecting.connection;
  const Session* const session = sessions_->find(selecting.key.session);
  const auto known = jobs_.find(selecting.key);
  const bool learns =
      known == jobs_.end() ? jobs_.size() < kMostJobs : known->second.unknown_epochs != 0;
  if (session == nullptr || !learns) {
    begin_epoch(connection);
    return;
  }
  Job job = make(selecting.key, *session, selecting.request);
  if (job.supply == nullptr) {
    job.unknown_epochs = known == jobs_.end() ? 0 : known->second.unknown_epochs;
    job.unknown_epochs = may_learn(selecting.key, *session, job) ? job.unknown_epochs + 1 : 0;
    if (job.unknown_epochs == 0) warn_of_none(selecting.key, *session);
  }
  const bool supplies = job.supply != nullptr;
  jobs_[selecting.key] = std::move(job);
  if (!supplies) {
    begin_epoch(connection);
    return;
  }
  selecting_[connection].until_ns = now_ns() + kPatienceNs;
  chunked_->begin(selecting.key.dataset, *session, [this, connection] { begin_epoch(connection); });
}

// Whether chunks of whole files are of use to the session.
bool ChunkDeliveries::may_use_files(const Session& session) const {
  return stage_->exists() && session.may_stage() && !session.options.cache_dir.empty();
}

// Of what a dataset consists is known after its first epoch, if the job does not declare it. Ranks
// learn it at different times, and must decide alike.
bool ChunkDeliveries::may_learn(const Key& key, const Session& session, const Job& job) const {
  const policy::SampleSet* const set = plans_->samples.set(key.dataset);
  const bool files = chunked_->kind_of(key.dataset) == ChunkedSamples::Kind::kFiles;
  const bool hopeless =
      files && (!may_use_files(session) || stage_->disk().chunks.store() == nullptr);
  return set != nullptr && set->known() < set->samples() && key.ranks == 1 && !hopeless &&
         job.unknown_epochs < kMostUnknown;
}

void ChunkDeliveries::warn_of_none(const Key& key, const Session& session) {
  const ChunkedSamples::Map map = chunked_->map_of(key.dataset);
  const char* const name = name_of(*session.options.chunks);
  if (chunked_->kind_of(key.dataset) == ChunkedSamples::Kind::kFiles) {
    if (session.options.cache_dir.empty()) {
      if (std::exchange(warned_no_folder_, true)) return;
      say(Level::kWarn, "policy={} without SLUICE_CACHE_DIR: every sample is read as requested",
          name);
    } else if (!may_use_files(session)) {
      say(Level::kWarn, "policy={} without staged files: every sample is read as requested", name);
    } else if (map.missing != 0) {
      chunked_->warn_of_missing(key.dataset, map, session);
    }
    return;
  }
  const char* why = "where its samples lie is not known";
  if (map.chunks != nullptr) why = "its records are read by several ranks";
  say(Level::kWarn, "policy={}: dataset {}: {}: every sample is read as requested", name,
      number(key.dataset), why);
}

void ChunkDeliveries::begin_epoch(uint64_t connection) {
  const auto waiting = selecting_.extract(connection);
  if (waiting.empty() || !base_->server.connected(connection)) return;
  const Key& key = waiting.mapped().key;
  const protocol::Samples& request = waiting.mapped().request;
  const auto found = jobs_.find(key);
  const std::vector<uint8_t> all(request.count, 1);
  const bool decides = found != jobs_.end() &&
                       (found->second.supply != nullptr || found->second.unknown_epochs != 0);
  if (!decides || found->second.samples != request.count ||
      !write_memory(waiting.mapped().memory->get(), all.data(), all.size())) {
    base_->server.refuse(connection, "the samples are not all in chunks");
    return;
  }
  Job& job = found->second;
  chunked_->begin_epoch(key.job());
  if (job.supply != nullptr) {
    job.supply->begin_epoch(
        [this, &key, &job](SampleId number) { return is_gone(key, job.part->sample(number)); });
  }
  job.random.shuffle(&job.order);
  job.epoch = request.epoch;
  job.requested = 0;
  base_->server.send(connection, MessageKind::kDone, {});
}

// What a reader has read from its own storage, before its chunk had been, has no copy.
bool ChunkDeliveries::is_gone(const Key& key, SampleId sample) const {
  const SampleFileId file = chunked_->file_of(key.dataset, sample);
  if (file == policy::FileTable::kNone) {
    return !plans_->scheduler.store().is_ahead(key.session, key.dataset, sample);
  }
  const policy::StagedCopy* const copy = plans_->stage.table().find(file);
  return copy == nullptr || copy->state == policy::StagedCopy::State::kSpent;
}

// Bytes of samples that may wait. Of what is for records one half is read ahead, and jobs share the
// other.
uint64_t ChunkDeliveries::capacity(const Key& key, bool records) const {
  if (!records) {
    return plans_->stage.room().retainable(plans_->samples.orders().beyond(key.dataset), now_ns());
  }
  const auto others =
      std::ranges::count_if(jobs_, [](const auto& one) { return one.second.records; });
  return plans_->scheduler.accounts().budget(key.session) / 2 / (static_cast<uint64_t>(others) + 1);
}

// Ranks on this host share what can be retained.
ChunkDeliveries::Job ChunkDeliveries::make(const Key& key, const Session& session,
                                           const protocol::Samples& request) {
  const ChunkedSamples::Map map = chunked_->map_of(key.dataset);
  Job job;
  job.samples = request.count;
  const bool may = map.records ? key.ranks == 1 : may_use_files(session);
  if (!may || map.chunks == nullptr || map.chunks->samples() != request.count ||
      request.count < key.ranks) {
    return job;
  }
  job.records = map.records;
  job.part = std::make_unique<ChunkPart>(*map.chunks, key.rank, key.ranks);
  std::vector<uint32_t> bytes(job.part->samples());
  for (SampleId number = 0; number < bytes.size(); ++number) {
    bytes[number] = (*map.bytes)[job.part->sample(number)];
  }
  job.supply = std::make_unique<ChunkSupply>(
      *session.options.chunks, job.part->map(), std::move(bytes),
      capacity(key, map.records) / std::max<uint64_t>(request.ranks.on_host, 1), request.first);
  job.held.resize(job.part->samples());
  if (key.ranks > 1) {
    job.order.resize(job.part->samples());
    std::iota(job.order.begin(), job.order.end(), 0);
    job.random = Random(mixed(request.first + key.rank));
  }
  return job;
}

// Decided in advance, by what will be in memory by then, as of Importance.
bool ChunkDeliveries::deliver(const Key& key, Session& session, const protocol::Samples& request,
                              int memory) {
  const auto found = jobs_.find(key);
  std::vector<uint32_t> samples(request.count);
  if (found == jobs_.end() || !read_memory(memory, samples.data(), request.bytes)) return false;
  Job& job = found->second;
  const bool as_requested = job.supply == nullptr && job.unknown_epochs != 0;
  if ((job.supply == nullptr && !as_requested) || request.epoch != job.epoch ||
      request.first != job.requested ||
      std::ranges::any_of(samples, [&job](uint32_t one) { return one >= job.samples; })) {
    return false;
  }
  if (as_requested) {
    job.requested += samples.size();
    for (uint32_t& sample : samples) {
      sample |= static_cast<uint32_t>(DeliveryKind::kMiss) << protocol::kDeliveryShift;
    }
    return write_memory(memory, samples.data(), request.bytes);
  }
  for (uint32_t& sample : samples) {
    const SampleId number = job.order.empty() ? job.part->number_of(sample)
                                              : job.order[job.requested % job.order.size()];
    ++job.requested;
    ChunkSupply::Delivery delivery = job.supply->request(number);
    job.held[delivery.sample] = delivery.held;
    delivery.sample = job.part->sample(delivery.sample);
    for (SampleId& one : delivery.loaded) one = job.part->sample(one);
    chunked_->deliver(key.job(), delivery.sample, delivery.loaded, !delivery.in_memory,
                      [](SampleId) { return kBrought; });
    if (delivery.sample != sample) {
      session.history.substituted({sample, delivery.sample}, job.samples);
    }
    sample = delivery.sample | static_cast<uint32_t>(kind_of(sample, delivery))
                                   << protocol::kDeliveryShift;
  }
  return write_memory(memory, samples.data(), request.bytes);
}

void ChunkDeliveries::on_read(SessionId owner, DatasetId dataset, uint64_t index) {
  for (auto at = jobs_.lower_bound({owner, dataset, 0});
       at != jobs_.end() && at->first.session == owner && at->first.dataset == dataset; ++at) {
    const Job& job = at->second;
    const auto sample = static_cast<SampleId>(index);
    if (job.supply == nullptr || index >= job.samples || !job.part->contains(sample)) continue;
    plans_->scheduler.store().set_importance(
        dataset, sample, job.held[job.part->number_of(sample)] ? kHeld : kSpent);
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
