#include "optimizer/services/samples/sample_requests.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "optimizer/io/ancestors.h"
#include "optimizer/io/log.h"
#include "optimizer/io/memory_file.h"
#include "optimizer/io/peer.h"
#include "protocol/sluice.h"

namespace sluice::optimizer {

using policy::DatasetId;
using policy::Extent;
using policy::FileId;
using policy::FileTable;
using policy::number;
using policy::SampleFileId;
using policy::SampleOrder;
using policy::SampleSet;
using policy::SessionId;
using policy::Source;
using policy::whole_file;
namespace {

using protocol::MessageKind;

constexpr uint64_t kFruitless = 256;  // samples
constexpr uint32_t kRetryEpochs = 8;

}  // namespace

SampleRequests::SampleRequests(const Service& service, StoredLocations* stored,
                               RecordLocator* records, Limits* limits)
    : Service(service), stored_(stored), records_(records), limits_(limits) {
  base_->dispatcher.add<DatasetMessage, SamplesMessage, LocateMessage, SeenMessage, FileUseMessage,
                        RecordMessage>(this);
}

void SampleRequests::handle(const Peer& peer, const DatasetMessage& message,
                            std::vector<UniqueFd> /*fds*/) {
  Session* session =
      sessions_->find_or_refuse(peer, message.dataset.session, message.dataset.token);
  if (session == nullptr) return;
  const DatasetId id = plans_->samples.use(session->id, message.name, message.dataset.samples);
  limits_->relieve();
  stored_->use(id, session->options.places, message.name, message.dataset.samples);
  const SampleSet* set = plans_->samples.set(id);
  const uint64_t known = set != nullptr ? set->known() : 0;
  const protocol::DatasetKnown answer{number(id),
                                      static_cast<uint32_t>(known * 100 / message.dataset.samples)};
  base_->server.send(peer.connection, MessageKind::kDatasetKnown,
                     std::as_bytes(std::span(&answer, 1)));
}

void SampleRequests::handle(const Peer& peer, const SamplesMessage& message,
                            std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  const Session* session = sessions_->find(request.session, request.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    base_->server.refuse(peer.connection,
                         session == nullptr ? "no such session" : "an order comes in one memfd");
    return;
  }
  // Checked before memory is allocated for the claimed size.
  const bool tentative = (request.flags & SLUICE_ORDER_TENTATIVE) != 0;
  const bool good = is_as_long(fds.front().get(), request.count * sizeof(uint32_t)) &&
                    (!tentative || request.first == 0);
  std::vector<uint32_t> indices(good ? request.count : 0);
  if (!good || !read_memory(fds.front().get(), indices.data(), request.count * sizeof(uint32_t))) {
    base_->server.refuse(peer.connection, "the order is shorter than declared");
    return;
  }
  if (request.first == 0 && !tentative) begin_epoch(*session, request);
  if (!tentative) {
    // What was expected gives way to what comes.
    plans_->samples.publish(session->id, DatasetId{request.dataset}, request.epoch, 0, {}, true);
    plans_->samples.datasets().touch(DatasetId{request.dataset});  // relieve() releases it last
    limits_->relieve(request.count * SampleOrder::kPositionBytes);
  }
  if (!plans_->samples.publish(session->id, DatasetId{request.dataset}, request.epoch,
                               request.first, indices, tentative)) {
    base_->server.refuse(peer.connection, "an order of unknown samples");
    return;
  }
  if (!tentative) {
    plans_->orders_changed = true;
    request_pages();
    plans_->sample_files.retry_refused();
  }
  base_->server.send(peer.connection, MessageKind::kDone, {});
}

// Decides once per epoch whether the session's events of samples are of any use.
void SampleRequests::begin_epoch(const Session& session, const protocol::Samples& order) {
  const DatasetId dataset{order.dataset};
  const bool idle = nothing_to_gain(session) || nothing_to_learn(session, dataset, order.epoch);
  // Without events the end of the previous epoch would go unnoticed: its order is removed here.
  auto& was_idle = session.memory.get()->header.samples_idle;
  if (idle || was_idle.load(std::memory_order_relaxed) != 0) {
    plans_->samples.orders().remove(session.id, dataset);
  }
  was_idle.store(idle ? 1 : 0, std::memory_order_relaxed);
  if (idle) return;
  // Events of the epoch before may still be in the rings.
  sessions_->after_events([this, id = session.id, dataset, epoch = order.epoch] {
    const Session* const later = sessions_->find(id);
    if (later == nullptr || !nothing_to_learn(*later, dataset, epoch)) return;
    later->memory.get()->header.samples_idle.store(1, std::memory_order_relaxed);
  });
}

// For all sessions: workers may be sessions of their own.
void SampleRequests::request_pages() {
  for (const auto& [id, session] : sessions_->all()) {
    const bool wanted =
        plans_->samples.orders().lacks_locations(id) || plans_->scheduler.retention().bounds(id);
    session->memory.get()->header.pages_wanted.store(wanted ? 1 : 0, std::memory_order_relaxed);
  }
}

// A path does not prove that the job may open the file. The optimizer does with it only what any
// process of this user with the same root and mounts may do. A process with another root or mount
// namespace may have fewer rights, and its paths may name other files.
bool SampleRequests::may_name_paths(const Peer& peer, Session* session) {
  if (shares_paths(peer.pid)) return true;
  if (session->counts.paths_refused++ == 0) {
    say(Level::kWarn,
        "session {}: process {} has another root or mount namespace: the paths that it names are "
        "not used",
        number(session->id), peer.pid);
  }
  base_->server.refuse(peer.connection, "paths of another root or mount namespace");
  return false;
}

void SampleRequests::handle(const Peer& peer, const LocateMessage& message,
                            std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  Session* session = sessions_->find(request.session, request.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    base_->server.refuse(peer.connection,
                         session == nullptr ? "no such session" : "locations come in one memfd");
    return;
  }
  if (message.kind == MessageKind::kLocate && !may_name_paths(peer, session)) return;
  bool good = is_as_long(fds.front().get(), request.bytes);
  std::string text(good ? request.bytes : 0, '\0');
  good = good && read_memory(fds.front().get(), text.data(), text.size());
  if (good && message.kind == MessageKind::kLocateExtents) {
    good = locate_extents(*session, request, text);
  } else if (good && message.kind == MessageKind::kLocateKeys) {
    good = locate_keys(*session, request, text);
  } else if (good) {
    good = locate_files(*session, request, text);
  }
  if (!good) {
    base_->server.refuse(peer.connection, "invalid locations");
    return;
  }
  plans_->orders_changed = true;
  resume_events(DatasetId{request.dataset});
  base_->server.send(peer.connection, MessageKind::kDone, {});
}

bool SampleRequests::locate_files(const Session& session, const protocol::Samples& request,
                                  std::string_view text) {
  std::vector<std::string_view> paths;
  if (!parse_paths(text, request.count * request.each, &paths, true)) return false;
  for (uint64_t i = 0; i < request.count; ++i) {
    std::vector<Extent> parts;
    for (uint64_t at = i * request.each; at < (i + 1) * request.each; ++at) {
      if (paths[at].empty()) continue;
      const SampleFileId file = plans_->sample_files.intern(paths[at]);
      if (file == FileTable::kNone) {  // the rest is read from the originals
        if (!std::exchange(warned_table_full_, true)) {
          say(Level::kWarn, "there is no room for the names of more than these {} files",
              plans_->sample_files.size());
        }
        return true;
      }
      parts.push_back(whole_file(file));
    }
    if (parts.empty()) continue;
    if (!plans_->samples.datasets().locate(session.id, DatasetId{request.dataset},
                                           request.first + i, std::move(parts),
                                           Source::kDeclared)) {
      return false;
    }
  }
  return true;
}

bool SampleRequests::locate_extents(const Session& session, const protocol::Samples& request,
                                    std::string_view text) {
  const FileId id{request.file};
  const FileEntry* file = session.files.count(id) != 0 ? files_->find(id) : nullptr;
  if (file == nullptr) return false;
  for (uint64_t i = 0; i < request.count; ++i) {
    protocol::Place place{};
    memcpy(&place, text.data() + i * sizeof place, sizeof place);
    if (place.length == 0 || place.offset >= file->size) continue;
    const auto length =
        static_cast<uint32_t>(std::min<uint64_t>(place.length, file->size - place.offset));
    if (!plans_->samples.datasets().locate(session.id, DatasetId{request.dataset},
                                           request.first + i, {{place.offset, length, id}},
                                           Source::kDeclared)) {
      return false;
    }
  }
  return true;
}

void SampleRequests::handle(const Peer& peer, const SeenMessage& message,
                            std::vector<UniqueFd> /*fds*/) {
  const protocol::Samples& request = message.samples;
  Session* session = sessions_->find_or_refuse(peer, request.session, request.token);
  if (session == nullptr || !may_name_paths(peer, session)) return;
  const DatasetId dataset{request.dataset};
  const SampleSet* set = plans_->samples.set(dataset);
  const uint64_t news = set != nullptr ? set->news() : 0;
  for (size_t at = 0; at < message.files.size();) {
    const uint32_t sample = message.files[at].first;
    std::vector<Extent> parts;
    for (; at < message.files.size() && message.files[at].first == sample; ++at) {
      const SampleFileId file = plans_->sample_files.intern(message.files[at].second);
      if (file != FileTable::kNone && !plans_->sample_files.unfit(file) &&
          parts.size() < SampleSet::kMaxParts) {
        parts.push_back(whole_file(file));
      }
    }
    if (!parts.empty()) {
      plans_->samples.datasets().locate(session->id, dataset, sample, std::move(parts),
                                        Source::kSeen);
    }
  }
  records_->doubt(DatasetId{request.dataset});
  // A report that confirms a known location changes no plan.
  if (set != nullptr && set->news() != news) {
    plans_->orders_changed = true;
    resume_events(dataset);
  }
  base_->server.send(peer.connection, MessageKind::kDone, {});
}

// A thread that reads the copy is not disturbed: only the copy's name is removed.
void SampleRequests::handle(const Peer& peer, const FileUseMessage& message,
                            std::vector<UniqueFd> /*fds*/) {
  if (sessions_->find_or_refuse(peer, message.used.session, message.used.token) == nullptr) return;
  const SampleFileId file = plans_->sample_files.intern(message.path);
  if (file != FileTable::kNone && plans_->sample_files.note_use(file, message.used.use)) {
    if (logs(Level::kDebug)) {
      say(Level::kDebug, "no sample's file: {} (use {})", message.path,
          static_cast<uint32_t>(message.used.use));
    }
    plans_->stage.drop(file);
    stage_->remove_evicted();
    plans_->orders_changed = true;
  }
  base_->server.send(peer.connection, MessageKind::kDone, {});
}

bool SampleRequests::locate_keys(const Session& session, const protocol::Samples& request,
                                 std::string_view text) {
  std::vector<std::string_view> keys;
  const DatasetId dataset{request.dataset};
  const FileId file{request.file};
  const SampleSet* set = plans_->samples.set(dataset);
  if (session.files.count(file) == 0 || !parse_keys(text, request.count, &keys) || set == nullptr ||
      request.first + request.count > set->samples()) {
    return false;
  }
  return records_->declared(dataset, file, request.first, keys);
}

// Whether nothing of the session's samples can be prefetched: all are whole files that are never
// staged (on a local disk, for example), and none is in a followed file.
bool SampleRequests::nothing_to_gain(const Session& session) const {
  if (recordings_->attached(session.id)) return false;
  const bool stages = stage_->exists() && session.may_stage();
  return plans_->samples.datasets().all_samples(session.id, [&](std::span<const Extent> parts) {
    return std::all_of(parts.begin(), parts.end(), [&](const Extent& part) {
      return plans_->scheduler.store().refused(part, stages) == FileTable::Refused::kForGood;
    });
  });
}

// Whether an epoch, or as much of it as arrived, taught no locations of samples: they come from a
// small database or from the job's own memory, and sample events are pure cost. A file may be
// reported up to an epoch after it was read, so what counts is what is known by now. Every
// kRetryEpochs epochs events are switched on again.
bool SampleRequests::nothing_to_learn(const Session& session, DatasetId dataset,
                                      uint32_t epoch) const {
  const SampleSet* set = plans_->samples.set(dataset);
  return set != nullptr && set->known() < set->samples() / 4 && session.files.empty() &&
         !recordings_->attached(session.id) && epoch % kRetryEpochs != 0 &&
         session.counts.fruitless >= std::max(kFruitless, set->samples() / 4 * 3);
}

// Locations of the dataset were learned: switches events on again in sessions that were made idle
// because nothing was known.
void SampleRequests::resume_events(DatasetId dataset) {
  for (const auto& [id, session] : sessions_->all()) {
    auto& idle = session->memory.get()->header.samples_idle;
    if (idle.load(std::memory_order_relaxed) == 0) continue;
    const auto order = plans_->samples.orders().running(id, dataset);
    if (!order || order->session != id || nothing_to_gain(*session)) continue;
    if (!nothing_to_learn(*session, dataset, order->epoch))
      idle.store(0, std::memory_order_relaxed);
  }
}

void SampleRequests::handle(const Peer& peer, const RecordMessage& message,
                            std::vector<UniqueFd> fds) {
  const Session* session = sessions_->find(message.record.session, message.record.token);
  if (session == nullptr || fds.size() != 1 || recordings_->attached(session->id)) {
    base_->server.refuse(peer.connection, session == nullptr ? "no such session"
                                          : fds.size() != 1  ? "a trace comes as one descriptor"
                                                             : "this session has a trace already");
    return;
  }
  const SessionId id = session->id;
  const std::vector<uint32_t> parent = ancestors_of(session->peer_pid, 1);
  recordings_->attach(id, session->peer_pid, parent.empty() ? 0 : parent.front(),
                      std::move(fds.front()),
                      [this, id, connection = peer.connection](const std::string& problem) {
                        if (problem.empty()) {
                          base_->server.send(connection, MessageKind::kDone, {});
                          return;
                        }
                        say(Level::kWarn, "session {}: not recorded: {}", number(id), problem);
                        base_->server.refuse(connection, problem);
                      });
}

}  // namespace sluice::optimizer
