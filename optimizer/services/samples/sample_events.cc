#include "optimizer/services/samples/sample_events.h"

#include <algorithm>

#include "optimizer/io/log.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::Extent;
using policy::FileId;
using policy::is_of_files;
using policy::JobOrders;
using policy::kNoSession;
using policy::Savings;
using policy::Scheduler;
using policy::SessionId;
using policy::SessionMetrics;
using policy::Uptake;
using protocol::SessionMetric;
namespace {

using protocol::EpochField;
using protocol::EventKind;

struct Counted {
  uint64_t hits = 0, late = 0, misses = 0;
};

Counted counted(const SessionMetrics* metrics) {
  if (metrics == nullptr) return {};
  const auto of = [metrics](SessionMetric metric) {
    return (*metrics)[static_cast<size_t>(metric)];
  };
  return {of(SessionMetric::sample_hits), of(SessionMetric::sample_late),
          of(SessionMetric::sample_misses)};
}

}  // namespace

SampleEvents::SampleEvents(const Service& service, RecordLocator* records, Histories* histories,
                           Importance* importance, HarmControl* harm)
    : Service(service),
      records_(records),
      histories_(histories),
      importance_(importance),
      harm_(harm) {}

bool SampleEvents::on_event(Session& session, const TakenEvent& event) {
  if (!event_is_sane(event.data, 0)) return false;
  const DatasetId dataset{protocol::dataset_of(event.data.address)};
  const uint64_t index = protocol::index_of(event.data.address);
  // The key by which the reader of a sample is found.
  const uint64_t reader = static_cast<uint64_t>(event.pid) << 32 | event.data.tid;
  switch (event.data.kind) {
    case EventKind::kSampleBegin:
      begin(session, reader, dataset, index, event.data.time_ns);
      recordings_->begin(session.id, reader, dataset, index, plans_->samples);
      return true;
    case EventKind::kSampleEnd:
      if (end(session, reader, dataset, index,
              {event.data.offset, event.data.length, event.data.time_ns, 0})) {
        harm_->ended(reader, dataset, index, event.data.time_ns);
        recordings_->end(session.id, reader, dataset, index,
                         plans_->sample_files.bytes(plans_->samples.parts(dataset, index)));
      }
      return true;
    case EventKind::kSamplePart:
      return add_part(session, reader, dataset, index, event.data);
    default:
      return false;
  }
}

void SampleEvents::begin(Session& session, uint64_t reader, DatasetId dataset, uint64_t index,
                         uint64_t time_ns) {
  const std::span<const Extent> parts = plans_->samples.begin(session.id, reader, dataset, index);
  const uint64_t now = now_ns();
  // Counted only for the session that owns the order: a worker that is a session of its own has
  // ended when the job reports.
  Session& owner = histories_->enter_epoch(session, dataset, now);
  Scheduler& scheduler = plans_->scheduler;
  const SessionMetrics* metrics = scheduler.accounts().metrics(owner.id);
  const Counted before = counted(metrics);
  const bool random = plans_->samples.reads_at_random(reader);
  scheduler.samples().on_sample_begin(owner.id, parts, random);
  if (Savings* savings = scheduler.accounts().savings(owner.id)) {
    // A worker reads in parallel with the process that owns the order.
    savings->reads(reader, static_cast<uint32_t>(reader >> 32) != owner.peer_pid, now);
    if (parts.empty()) savings->unknown();
  }
  const Counted after = counted(metrics);
  const uint64_t hit = after.hits - before.hits;
  const uint64_t late = after.late - before.late;
  // Times only datasets from which the session selects: events may name any dataset.
  auto& benefits = owner.selection.benefits;
  if (const auto at = benefits.find(dataset); at != benefits.end()) {
    at->second.begun(now, hit != 0);
  }
  if (plans_->samples.set(dataset) != nullptr) {
    time_sample(reader, dataset, index, std::min(time_ns, now), parts, hit + late != 0);
  }
  SessionHistory& history = owner.history;
  history.count(EpochField::sample_hits, hit, now);
  history.count(EpochField::sample_late, late, now);
  history.count(EpochField::sample_misses, after.misses - before.misses, now);
  history.count(EpochField::sample_unknown, parts.empty() ? 1 : 0, now);
  if (!random) return;  // its bytes are counted as a stream's
  const uint64_t bytes = plans_->sample_files.bytes(parts);
  history.count(EpochField::memory_bytes, hit * bytes, now);
  history.count(EpochField::late_bytes, late * bytes, now);
}

void SampleEvents::time_sample(uint64_t reader, DatasetId dataset, uint64_t index, uint64_t time_ns,
                               std::span<const Extent> parts, bool prefetched) {
  using Mechanism = HarmControl::Mechanism;
  const bool copy = is_of_files(parts);
  const bool offered = plans_->scheduler.store().offers_copies(parts, time_ns);
  uptake_.begun(reader, dataset, index, offered, time_ns);
  if (offered) plans_->samples.datasets().was_offered(dataset, index, time_ns);
  // Pages of a record may have been cached before Sluice: a control sample then still is native.
  const bool control = !copy && JobOrders::is_control(static_cast<uint32_t>(index)) &&
                       harm_->in_trial(dataset, Mechanism::kRecords);
  harm_->begun(
      reader, dataset, index,
      {copy ? Mechanism::kCopies : Mechanism::kRecords,
       prefetched && !control ? HarmControl::Kind::kPrefetched : HarmControl::Kind::kNative,
       time_ns, static_cast<uint64_t>(plans_->scheduler.store().alone_ns(parts))});
}

bool SampleEvents::end(Session& session, uint64_t reader, DatasetId dataset, uint64_t index,
                       Uptake::End end) {
  const bool random = plans_->samples.reads_at_random(reader);
  if (!plans_->samples.end(reader, dataset, index)) return false;
  records_->seen(dataset, index);
  records_->doubt(dataset);
  const std::span<const Extent> parts = plans_->samples.parts(dataset, index);
  const uint64_t now = now_ns();
  Session& owner = histories_->owner(session, dataset);
  uint64_t& fruitless = owner.counts.fruitless;
  fruitless = parts.empty() ? fruitless + 1 : fruitless - std::min<uint64_t>(fruitless, 4);
  importance_->on_read(session, owner, static_cast<uint32_t>(reader >> 32), dataset, index);
  note_uptake(owner.id, reader, dataset, index, end);
  plans_->scheduler.samples().on_sample_end(owner.id, parts);
  stage_->log_read(dataset, parts);
  if (!random) return true;
  plans_->scheduler.retention().on_read(owner.id, dataset, index, parts, now);
  owner.history.count(EpochField::read_bytes, plans_->sample_files.bytes(parts), now);
  return true;
}

// Called before the copies of the sample's files are released.
void SampleEvents::note_uptake(SessionId owner, uint64_t reader, DatasetId dataset, uint64_t index,
                               Uptake::End end) {
  end.storage_ns = static_cast<uint64_t>(
      plans_->scheduler.store().alone_ns(plans_->samples.parts(dataset, index)));
  if (end.given != 0) plans_->samples.datasets().opened(dataset);
  const bool before = uptake_.needs_originals(dataset);
  if (uptake_.ended(reader, dataset, index, end) != Uptake::Verdict::kOriginal && !before) return;
  if (SessionMetrics* metrics = plans_->scheduler.accounts().metrics(owner)) {
    ++(*metrics)[static_cast<size_t>(SessionMetric::originals_needed)];
  }
  if (before || !uptake_.needs_originals(dataset)) return;
  if (const auto following = plans_->samples.following(kNoSession, dataset)) {
    say(Level::kInfo, "{} is not read from copies: its originals are read ahead", following->name);
  }
  plans_->stage.need_originals(dataset);
  plans_->samples.orders().restart(dataset);
  plans_->orders_changed = true;  // other copies have readers now
  stage_->remove_evicted();
}

bool SampleEvents::add_part(const Session& session, uint64_t reader, DatasetId dataset,
                            uint64_t index, const protocol::EventData& event) {
  const FileId id{event.file};
  FileEntry* file = session.files.count(id) != 0 ? files_->find(id) : nullptr;
  if (file == nullptr || event.offset >= file->size || event.length == 0) return false;
  const uint64_t length = std::min(event.length, file->size - event.offset);
  if (length > UINT32_MAX) return false;
  plans_->samples.part(reader, dataset, index, {event.offset, static_cast<uint32_t>(length), id});
  share_file(session.id, dataset, *file);
  return true;
}

// Workers that are sessions of their own end with their epoch. Makes the session that owns the
// order a user of the files that they opened, or the locations learned in them would be lost.
void SampleEvents::share_file(SessionId session, DatasetId dataset, FileEntry& file) {
  const auto running = plans_->samples.orders().running(session, dataset);
  if (!running || running->session == session) return;
  Session* const owner = sessions_->find(running->session);
  if (owner == nullptr || owner->files.size() >= Session::kMaxFiles) return;
  if (owner->files.insert(file.id).second) files_->share(file, owner->id);
}

}  // namespace sluice::optimizer
