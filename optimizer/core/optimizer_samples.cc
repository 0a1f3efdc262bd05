// Samples: what jobs tell of their datasets, and what their rings tell while samples are read.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "optimizer/core/optimizer.h"
#include "optimizer/daemon/log.h"
#include "optimizer/util/clock.h"

namespace sluice::optimizer {
namespace {

using protocol::EventKind;
using protocol::MessageKind;

// Only memory has seals: a descriptor of a file system that could make us wait has none.
bool is_memory(int fd) { return fcntl(fd, F_GET_SEALS) >= 0; }

// The first `size` bytes of a memfd. False if it is shorter.
bool read_memory(int fd, void* out, uint64_t size) {
  struct stat about {};
  if (fstat(fd, &about) != 0 || static_cast<uint64_t>(about.st_size) < size) return false;
  for (uint64_t done = 0; done < size;) {
    const ssize_t got =
        pread(fd, static_cast<char*>(out) + done, size - done, static_cast<off_t>(done));
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  return true;
}

// What a sample is about for who has to find its reader: pid << 32 | tid.
uint64_t reader_of(const TakenEvent& event) {
  return static_cast<uint64_t>(event.pid) << 32 | event.data.tid;
}

}  // namespace

void Optimizer::on_dataset(const Peer& peer, const DatasetMessage& message) {
  Session* session = session_of(message.dataset.session, message.dataset.token);
  if (session == nullptr) {
    server_.refuse(peer.connection, "no such session");
    return;
  }
  const uint32_t id = samples_.use(session->id, message.name, message.dataset.samples);
  if (id == 0) {
    server_.refuse(peer.connection, "too many datasets");
    return;
  }
  const protocol::DatasetKnown answer{id, 0};
  server_.send(peer.connection, MessageKind::kDatasetKnown, std::as_bytes(std::span(&answer, 1)));
}

void Optimizer::on_order(const Peer& peer, const SamplesMessage& message,
                         std::vector<UniqueFd> fds) {
  const protocol::Samples& told = message.samples;
  const Session* session = session_of(told.session, told.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    server_.refuse(peer.connection,
                   session == nullptr ? "no such session" : "an order comes in one memfd");
    return;
  }
  std::vector<uint32_t> indices(told.count);
  if (!read_memory(fds.front().get(), indices.data(), told.count * sizeof(uint32_t))) {
    server_.refuse(peer.connection, "the order is shorter than it says");
    return;
  }
  if (!samples_.publish(session->id, told.dataset, told.epoch, told.first, indices)) {
    server_.refuse(peer.connection, "an order of samples that there are not");
    return;
  }
  orders_new_ = true;
  stage_plan_.forgive();
  server_.send(peer.connection, MessageKind::kDone, {});
}

void Optimizer::on_locate(const Peer& peer, const LocateMessage& message,
                          std::vector<UniqueFd> fds) {
  const protocol::Samples& told = message.samples;
  const Session* session = session_of(told.session, told.token);
  if (session == nullptr || fds.size() != 1 || !is_memory(fds.front().get())) {
    server_.refuse(peer.connection,
                   session == nullptr ? "no such session" : "places come in one memfd");
    return;
  }
  std::string text(told.bytes, '\0');
  std::vector<std::string_view> paths;
  if (!read_memory(fds.front().get(), text.data(), text.size()) ||
      !parse_paths(text, told.count, &paths)) {
    server_.refuse(peer.connection, "places that make no sense");
    return;
  }
  for (uint64_t i = 0; i < told.count; ++i) {
    const uint32_t file = sample_files_.intern(paths[i]);
    if (file == FileTable::kNone) break;  // no room for more: these are read where they are
    if (!samples_.locate(session->id, told.dataset, told.first + i, {{0, 0, kWholeFile | file}},
                         false)) {
      server_.refuse(peer.connection, "places of samples that there are not");
      return;
    }
  }
  orders_new_ = true;
  server_.send(peer.connection, MessageKind::kDone, {});
}

void Optimizer::on_seen(const Peer& peer, const SeenMessage& message) {
  const protocol::Samples& told = message.samples;
  const Session* session = session_of(told.session, told.token);
  if (session == nullptr) {
    server_.refuse(peer.connection, "no such session");
    return;
  }
  for (size_t at = 0; at < message.files.size();) {
    const uint32_t sample = message.files[at].first;
    std::vector<Extent> parts;
    for (; at < message.files.size() && message.files[at].first == sample; ++at) {
      const uint32_t file = sample_files_.intern(message.files[at].second);
      if (file != FileTable::kNone && parts.size() < SampleSet::kMaxParts) {
        parts.push_back({0, 0, kWholeFile | file});
      }
    }
    if (!parts.empty()) {
      samples_.locate(session->id, told.dataset, sample, std::move(parts), true);
    }
  }
  orders_new_ = true;
  server_.send(peer.connection, MessageKind::kDone, {});
}

bool Optimizer::on_sample_event(Session& session, const TakenEvent& event) {
  const uint32_t dataset = protocol::dataset_of(event.data.address);
  const uint64_t index = protocol::index_of(event.data.address);
  const uint64_t reader = reader_of(event);
  switch (event.data.kind) {
    case EventKind::kSampleBegin:
      begin_sample(session, reader, dataset, index);
      recordings_.begin(session.id, reader, dataset, index, samples_);
      return true;
    case EventKind::kSampleEnd:
      if (end_sample(session, reader, dataset, index)) {
        recordings_.end(session.id, reader, dataset, index,
                        samples_.bytes_of(samples_.parts(dataset, index)));
      }
      return true;
    case EventKind::kSamplePart: {
      const FileEntry* file =
          session.files.count(event.data.file) != 0 ? files_.find(event.data.file) : nullptr;
      if (file == nullptr || event.data.offset >= file->size || event.data.length == 0)
        return false;
      const uint64_t length = std::min(event.data.length, file->size - event.data.offset);
      if (length > UINT32_MAX) return false;
      samples_.part(reader, dataset, index,
                    {event.data.offset, static_cast<uint32_t>(length), event.data.file});
      return true;
    }
    default:
      return false;
  }
}

}  // namespace sluice::optimizer
