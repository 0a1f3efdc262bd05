// Samples: datasets, orders and locations that jobs declare, and ring events while samples are
// read.
#include <algorithm>
#include <cstring>
#include <utility>

#include "optimizer/core/optimizer.h"
#include "optimizer/io/clock.h"
#include "optimizer/io/log.h"
#include "optimizer/io/memory_file.h"
#include "optimizer/io/peer.h"

namespace sluice::optimizer {
namespace {

using protocol::EventKind;
using protocol::MessageKind;

constexpr uint64_t kFruitless = 256;  // samples
constexpr uint32_t kLookAgain = 8;    // epochs

// The key by which the reader of a sample is found: pid << 32 | tid.
uint64_t reader_of(const TakenEvent& event) {
  return static_cast<uint64_t>(event.pid) << 32 | event.data.tid;
}

}  // namespace

void Optimizer::handle(const Peer& peer, const DatasetMessage& message,
                       std::vector<UniqueFd> /*fds*/) {
  Session* session = session_or_refuse(peer, message.dataset.session, message.dataset.token);
  if (session == nullptr) return;
  const uint32_t id = samples_.use(session->id, message.name, message.dataset.samples);
  relieve();
  places_.use(id, session->options.places, message.name, message.dataset.samples);
  const protocol::DatasetKnown answer{id, 0};
  server_.send(peer.connection, MessageKind::kDatasetKnown, std::as_bytes(std::span(&answer, 1)));
}

void Optimizer::handle(const Peer& peer, const SamplesMessage& message, std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  const Session* session = session_of(request.session, request.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    server_.refuse(peer.connection,
                   session == nullptr ? "no such session" : "an order comes in one memfd");
    return;
  }
  // Checked before memory is allocated for the claimed size.
  const bool good = is_as_long(fds.front().get(), request.count * sizeof(uint32_t));
  std::vector<uint32_t> indices(good ? request.count : 0);
  if (!good || !read_memory(fds.front().get(), indices.data(), request.count * sizeof(uint32_t))) {
    server_.refuse(peer.connection, "the order is shorter than it says");
    return;
  }
  if (request.first == 0) {  // decided once per epoch
    const bool idle =
        nothing_to_gain(*session) || nothing_to_learn(*session, request.dataset, request.epoch);
    // Without events the end of the previous epoch would go unnoticed: its order is forgotten here.
    auto& was_idle = session->memory.get()->header.samples_idle;
    if (idle || was_idle.load(std::memory_order_relaxed) != 0) {
      samples_.orders().forget(session->id, request.dataset);
    }
    was_idle.store(idle ? 1 : 0, std::memory_order_relaxed);
    // Events of the epoch before may still be in the rings.
    if (!idle) {
      after_events([this, id = session->id, dataset = request.dataset, epoch = request.epoch] {
        const auto at = sessions_.find(id);
        if (at == sessions_.end() || !nothing_to_learn(*at->second, dataset, epoch)) return;
        at->second->memory.get()->header.samples_idle.store(1, std::memory_order_relaxed);
      });
    }
  }
  samples_.datasets().touch(request.dataset);  // so that relieve() does not release this one
  relieve(request.count * SampleOrder::kPositionBytes);
  if (!samples_.publish(session->id, request.dataset, request.epoch, request.first, indices)) {
    server_.refuse(peer.connection, "an order of samples that there are not");
    return;
  }
  orders_new_ = true;
  ask_for_pages();
  sample_files_.retry_refused();
  server_.send(peer.connection, MessageKind::kDone, {});
}

// For all sessions: workers may be sessions of their own.
void Optimizer::ask_for_pages() {
  for (const auto& [id, session] : sessions_) {
    const bool wanted = samples_.orders().wants_places(id) || scheduler_.retention().bounds(id);
    session->memory.get()->header.pages_wanted.store(wanted ? 1 : 0, std::memory_order_relaxed);
  }
}

// A path does not prove that the job may open the file. The optimizer does with it only what any
// process of this user with the same root and mounts may do. A process with another root or mount
// namespace may have fewer rights, and its paths may name other files.
bool Optimizer::may_name_paths(const Peer& peer, Session* session) {
  if (shares_paths(peer.pid)) return true;
  if (!std::exchange(session->said_paths, true)) {
    say(Level::kWarn,
        "session {}: process {} has another root or mount namespace: the paths that it names are "
        "not used",
        session->id, peer.pid);
  }
  server_.refuse(peer.connection, "paths of another root or mount namespace");
  return false;
}

void Optimizer::handle(const Peer& peer, const LocateMessage& message, std::vector<UniqueFd> fds) {
  const protocol::Samples& request = message.samples;
  Session* session = session_of(request.session, request.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    server_.refuse(peer.connection,
                   session == nullptr ? "no such session" : "places come in one memfd");
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
    server_.refuse(peer.connection, "places that make no sense");
    return;
  }
  orders_new_ = true;
  look_again(request.dataset);
  server_.send(peer.connection, MessageKind::kDone, {});
}

bool Optimizer::locate_files(const Session& session, const protocol::Samples& request,
                             std::string_view text) {
  std::vector<std::string_view> paths;
  if (!parse_paths(text, request.count, &paths)) return false;
  for (uint64_t i = 0; i < request.count; ++i) {
    const uint32_t file = sample_files_.intern(paths[i]);
    if (file == FileTable::kNone) {  // the rest is read from the originals
      if (!std::exchange(said_table_full_, true)) {
        say(Level::kWarn, "there is no room for the names of more than these {} files",
            sample_files_.size());
      }
      break;
    }
    if (!samples_.datasets().locate(session.id, request.dataset, request.first + i,
                                    {whole_file(file)}, Source::kDeclared)) {
      return false;
    }
  }
  return true;
}

bool Optimizer::locate_extents(const Session& session, const protocol::Samples& request,
                               std::string_view text) {
  const FileEntry* file =
      session.files.count(request.file) != 0 ? files_.find(request.file) : nullptr;
  if (file == nullptr) return false;
  for (uint64_t i = 0; i < request.count; ++i) {
    protocol::Place place{};
    memcpy(&place, text.data() + i * sizeof place, sizeof place);
    if (place.length == 0 || place.offset >= file->size) continue;
    const auto length =
        static_cast<uint32_t>(std::min<uint64_t>(place.length, file->size - place.offset));
    if (!samples_.datasets().locate(session.id, request.dataset, request.first + i,
                                    {{place.offset, length, request.file}}, Source::kDeclared)) {
      return false;
    }
  }
  return true;
}

void Optimizer::handle(const Peer& peer, const SeenMessage& message,
                       std::vector<UniqueFd> /*fds*/) {
  const protocol::Samples& request = message.samples;
  Session* session = session_or_refuse(peer, request.session, request.token);
  if (session == nullptr || !may_name_paths(peer, session)) return;
  const SampleSet* set = samples_.set(request.dataset);
  const uint64_t news = set != nullptr ? set->news() : 0;
  for (size_t at = 0; at < message.files.size();) {
    const uint32_t sample = message.files[at].first;
    std::vector<Extent> parts;
    for (; at < message.files.size() && message.files[at].first == sample; ++at) {
      const uint32_t file = sample_files_.intern(message.files[at].second);
      if (file != FileTable::kNone && !sample_files_.unfit(file) &&
          parts.size() < SampleSet::kMaxParts) {
        parts.push_back(whole_file(file));
      }
    }
    if (!parts.empty()) {
      samples_.datasets().locate(session->id, request.dataset, sample, std::move(parts),
                                 Source::kSeen);
    }
  }
  // A report that confirms a known location changes no plan.
  if (set != nullptr && set->news() != news) {
    orders_new_ = true;
    look_again(request.dataset);
  }
  server_.send(peer.connection, MessageKind::kDone, {});
}

// A thread that reads the copy is not disturbed: only the copy's name is removed.
void Optimizer::handle(const Peer& peer, const FileUseMessage& message,
                       std::vector<UniqueFd> /*fds*/) {
  if (session_or_refuse(peer, message.used.session, message.used.token) == nullptr) return;
  const uint32_t file = sample_files_.intern(message.path);
  if (file != FileTable::kNone && sample_files_.note_use(file, message.used.use)) {
    if (logs(Level::kDebug)) {
      say(Level::kDebug, "no sample's file: {} (use {})", message.path,
          static_cast<uint32_t>(message.used.use));
    }
    stage_plan_.drop(file);
    stage_.remove_evicted();
    orders_new_ = true;
  }
  server_.send(peer.connection, MessageKind::kDone, {});
}

bool Optimizer::locate_keys(const Session& session, const protocol::Samples& request,
                            std::string_view text) {
  std::vector<std::string_view> keys;
  const SampleSet* set = samples_.set(request.dataset);
  if (session.files.count(request.file) == 0 || !parse_keys(text, request.count, &keys) ||
      set == nullptr || request.first + request.count > set->samples()) {
    return false;
  }
  return records_.declared(request.dataset, request.file, request.first, keys);
}

// Whether nothing of the session's samples can be prefetched: all are whole files that are never
// staged (on a local disk, for example), and none lies in a followed file.
bool Optimizer::nothing_to_gain(const Session& session) const {
  if (recordings_.attached(session.id)) return false;
  const bool stages = stage_.exists() && may_stage(session);
  return samples_.datasets().all_samples(session.id, [&](std::span<const Extent> parts) {
    return std::all_of(parts.begin(), parts.end(), [&](const Extent& part) {
      return scheduler_.store().refused(part, stages) == FileTable::Refused::kForGood;
    });
  });
}

// Whether an epoch, or as much of it as arrived, taught no locations of samples: they come from a
// small database or from the job's own memory, and sample events are pure cost. A file may be
// reported up to an epoch after it was read, so what counts is what is known by now. Every
// kLookAgain epochs events are switched on again.
bool Optimizer::nothing_to_learn(const Session& session, uint32_t dataset, uint32_t epoch) const {
  const SampleSet* set = samples_.set(dataset);
  return set != nullptr && set->known() < set->samples() / 4 && session.files.empty() &&
         !recordings_.attached(session.id) && epoch % kLookAgain != 0 &&
         session.fruitless >= std::max(kFruitless, set->samples() / 4 * 3);
}

// Locations of the dataset were learned: switches events on again in sessions that were made idle
// because nothing was known.
void Optimizer::look_again(uint32_t dataset) {
  for (const auto& [id, session] : sessions_) {
    auto& idle = session->memory.get()->header.samples_idle;
    if (idle.load(std::memory_order_relaxed) == 0) continue;
    const auto order = samples_.orders().running(id, dataset);
    if (!order || order->session != id || nothing_to_gain(*session)) continue;
    if (!nothing_to_learn(*session, dataset, order->epoch))
      idle.store(0, std::memory_order_relaxed);
  }
}

// Workers that are sessions of their own end with their epoch. Makes the session that owns the
// order a user of the files that they opened, or the locations learned in them would be lost.
void Optimizer::share_file(uint32_t session, uint32_t dataset, FileEntry& file) {
  const auto whose = samples_.orders().running(session, dataset);
  if (!whose || whose->session == session) return;
  const auto at = sessions_.find(whose->session);
  if (at == sessions_.end() || at->second->files.size() >= Session::kMaxFiles) return;
  if (at->second->files.insert(file.id).second) files_.share(file, whose->session);
}

bool Optimizer::on_sample_event(Session& session, const TakenEvent& event) {
  const uint32_t dataset = protocol::dataset_of(event.data.address);
  const uint64_t index = protocol::index_of(event.data.address);
  const uint64_t reader = reader_of(event);
  switch (event.data.kind) {
    case EventKind::kSampleBegin:
      begin_sample(session, reader, dataset, index, event.data.time_ns);
      recordings_.begin(session.id, reader, dataset, index, samples_);
      return true;
    case EventKind::kSampleEnd:
      if (end_sample(session, reader, dataset, index,
                     {event.data.offset, event.data.length, event.data.time_ns, 0})) {
        if (const auto found = harm_.ended(reader, dataset, index, event.data.time_ns)) {
          on_harm(dataset, *found, now_ns());
        }
        recordings_.end(session.id, reader, dataset, index,
                        sample_files_.bytes(samples_.parts(dataset, index)));
      }
      return true;
    case EventKind::kSamplePart: {
      FileEntry* file =
          session.files.count(event.data.file) != 0 ? files_.find(event.data.file) : nullptr;
      if (file == nullptr || event.data.offset >= file->size || event.data.length == 0)
        return false;
      const uint64_t length = std::min(event.data.length, file->size - event.data.offset);
      if (length > UINT32_MAX) return false;
      samples_.part(reader, dataset, index,
                    {event.data.offset, static_cast<uint32_t>(length), event.data.file});
      share_file(session.id, dataset, *file);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace sluice::optimizer
