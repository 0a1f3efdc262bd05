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
  struct stat about {};
  const uint64_t wanted = told.count * sizeof(uint32_t);
  if (fstat(fds.front().get(), &about) != 0 || static_cast<uint64_t>(about.st_size) < wanted) {
    server_.refuse(peer.connection, "the order is shorter than it says");
    return;
  }
  std::vector<uint32_t> indices(told.count);
  const auto size = static_cast<ssize_t>(wanted);
  auto* bytes = reinterpret_cast<char*>(indices.data());
  for (ssize_t done = 0; done < size;) {
    const ssize_t got =
        pread(fds.front().get(), bytes + done, static_cast<size_t>(size - done), done);
    if (got <= 0) {
      server_.refuse(peer.connection, "the order is shorter than it says");
      return;
    }
    done += got;
  }
  if (!samples_.publish(session->id, told.dataset, told.epoch, told.first, indices)) {
    server_.refuse(peer.connection, "an order of samples that there are not");
    return;
  }
  server_.send(peer.connection, MessageKind::kDone, {});
}

bool Optimizer::on_sample_event(Session& session, const TakenEvent& event) {
  const uint32_t dataset = protocol::dataset_of(event.data.address);
  const uint64_t index = protocol::index_of(event.data.address);
  const uint64_t reader = reader_of(event);
  switch (event.data.kind) {
    case EventKind::kSampleBegin:
      scheduler_.on_sample_begin(session.id, samples_.begin(session.id, reader, dataset, index));
      recordings_.begin(session.id, reader, dataset, index, samples_);
      return true;
    case EventKind::kSampleEnd:
      if (samples_.end(reader, dataset, index)) {
        scheduler_.on_sample_end(session.id, samples_.parts(dataset, index));
        recordings_.end(session.id, reader, dataset, index, samples_.parts(dataset, index));
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
