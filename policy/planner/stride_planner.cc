#include "policy/planner/stride_planner.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr size_t kMaxReaders = 64;  // of a file
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kLeastWindow = 16 * kMiB;
constexpr uint64_t kMostWindow = 128 * kMiB;
constexpr double kWindowSeconds = 0.3;
constexpr uint64_t kShare = 4;  // divisor: what one reader may take of the budget
constexpr uint64_t kPredictedRead = 512 << 10;
constexpr uint64_t kIdleNs = 2'000'000'000;  // a reader that paused for longer expects nothing
constexpr uint16_t kTaken = kReading | kReady | kFound | kBehind;
constexpr size_t kWatched = 3;  // expected runs

bool active(const StridedReader& reader, uint64_t idle_ns, uint64_t now_ns) {
  return now_ns - std::min(now_ns, reader.strides.last_ns()) <= idle_ns;
}

}  // namespace

bool StridePlanner::on_read(PlannedFile& file, const Access& access) {
  const auto known = file.readers.find(access.reader);
  if (known == file.readers.end() && file.readers.size() >= kMaxReaders) {
    file.readers.erase(std::min_element(
        file.readers.begin(), file.readers.end(), [](const auto& a, const auto& b) {
          return a.second.strides.last_ns() < b.second.strides.last_ns();
        }));
  }
  StridedReader& reader = file.readers[access.reader];
  reader.session = access.session;
  if (reader.strides.on_read({access.offset, access.offset + access.length}, access.time_ns)) {
    return reader.strides.predicted();
  }
  reader.frontier = reader.probed = 0;
  return false;
}

uint64_t StridePlanner::window(const PlannedFile& file, const StridedReader& reader) const {
  double rate = queue_.of(file).model.bandwidth();
  if (reader.strides.rate() > 0) rate = std::min(rate, 2 * reader.strides.rate());
  return std::min(
      std::clamp(static_cast<uint64_t>(kWindowSeconds * rate), kLeastWindow, kMostWindow),
      accounts_.budget(reader.session) / kShare);
}

// The next piece that the reader is expected to read and that is not in memory, nor on its way: at
// most one block.
std::optional<Range> StridePlanner::next(FileId id, PlannedFile& file, StridedReader& reader,
                                         uint64_t block) {
  if (!reader.strides.predicted()) reader.frontier = reader.probed = 0;  // several places at once
  for (const Range& range : reader.strides.expected(window(file, reader))) {
    const uint64_t end = std::min((range.end + kPage - 1) / kPage * kPage, file.size);
    uint64_t at = std::max(reader.frontier, range.begin / kPage * kPage);
    while (at < end) {
      const uint64_t begin = at;
      Range piece{at, std::min((at / block + 1) * block, end)};
      for (const auto& some :
           {file.coverage.read().pieces_in(piece), file.pages.pieces(piece, kTaken)}) {
        if (some.empty()) continue;
        if (some.front().begin <= at) at = std::max(at, some.front().end);
        piece.end = std::min(piece.end, std::max(some.front().begin, begin));
      }
      if (at != begin) continue;
      const uint64_t cached = cached_at(residency_, id, piece, end, &reader.probed);
      if (cached == 0) return piece;
      accounts_.count(reader.session, SessionMetric::already_cached_bytes,
                      file.pages.on(PageEvent::kFoundCached, {at, at + cached}).bytes);
      at += cached;
    }
    if (reader.strides.predicted()) reader.frontier = at;
  }
  return std::nullopt;
}

void StridePlanner::plan(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  Mount& mount = queue_.mounts().at(mount_id);
  for (auto& [id, file] : files_) {
    if (file.mount != mount_id || !file.usable || !file.coverage.holes()) continue;
    for (auto& [reader_id, reader] : file.readers) {
      const Accounts::Session* session = accounts_.find(reader.session);
      if (session == nullptr || !session->prefetch || session->options.size != 0) continue;
      if (!active(reader, kIdleNs, now_ns)) continue;
      const bool predicted = reader.strides.predicted();
      if (!predicted && file.tracker.random()) continue;
      const uint64_t block =
          predicted ? std::max<uint64_t>(mount.model.block(), kPredictedRead) : mount.model.block();
      while (mount.idle(now_ns) != 0) {
        const std::optional<Range> piece = next(id, file, reader, block);
        if (!piece) break;
        if (!accounts_.room(reader.session, piece->length())) {
          accounts_.set_starved(true);
          break;
        }
        queue_.start({id, reader.session, kStrideStream, *piece}, now_ns, reads);
        reader.frontier = piece->end;
      }
    }
  }
}

bool StridePlanner::predicts(const PlannedFile& file, uint64_t now_ns) {
  return file.coverage.holes() &&
         std::any_of(file.readers.begin(), file.readers.end(), [&](const auto& entry) {
           return entry.second.strides.predicted() && active(entry.second, kIdleNs, now_ns);
         });
}

bool StridePlanner::needed(const PlannedFile& file, Range range, uint64_t idle_ns,
                           uint64_t now_ns) {
  if (!file.coverage.holes()) return false;
  for (const auto& [id, reader] : file.readers) {
    if (!active(reader, idle_ns, now_ns)) continue;
    for (const Range& part : reader.strides.expected(kMostWindow)) {
      if (part.begin < range.end && range.begin < part.end) return true;
    }
  }
  return false;
}

void StridePlanner::watch(const PlannedFile& file, std::vector<ObservedStream>* out) {
  if (!file.coverage.holes()) return;
  for (const auto& [id, reader] : file.readers) {
    const std::vector<Range> expected = reader.strides.expected(kLeastWindow);
    ObservedStream at{reader.strides.position(), 0, reader.strides.rate(), true};
    at.frontier = at.position;
    for (const Range& range : expected) at.frontier += range.length();
    out->push_back(at);
    for (size_t i = 0; i < std::min(expected.size(), kWatched); ++i) {
      out->push_back({expected[i].begin, expected[i].end, 0, true});
    }
  }
}

}  // namespace sluice::policy
