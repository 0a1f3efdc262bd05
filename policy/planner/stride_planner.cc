#include "policy/planner/stride_planner.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr size_t kMaxReaders = 64;  // of a file
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kLeastWindow = 16 * kMiB;
constexpr uint64_t kMostWindow = 128 * kMiB;
constexpr double kWindowSeconds = 0.3;
constexpr uint64_t kShare = 4;               // divisor: what one reader may take of the budget
constexpr uint64_t kIdleNs = 2'000'000'000;  // a reader that paused for longer expects nothing
constexpr uint64_t kBeginning = 8;  // divisor of the file's size: this part is its beginning
constexpr uint64_t kUnordered = 8;  // times what was read: the most that is read ahead
constexpr size_t kWatched = 3;      // expected runs

bool active(const StridedReader& reader, uint64_t idle_ns, uint64_t now_ns) {
  return now_ns - std::min(now_ns, reader.strides.last_ns()) <= idle_ns;
}

// What follows, where the order is known.
std::vector<Range> ahead(const PlannedFile& file, const StridedReader& reader, uint64_t most) {
  if (reader.shares.partial() && !reader.shares.unordered()) {
    return reader.shares.expected(file.tensors, 0, most);
  }
  const bool descends = reader.descents.active();
  if (!descends && !reader.shares.known()) {
    if (const auto guess = reader.shares.guess(file.tensors)) return {*guess};
  }
  std::vector<Range> out =
      descends ? reader.descents.expected(most) : reader.strides.expected(most);
  if (const auto end = reader.shares.first_end(file.tensors)) {
    std::erase_if(out, [&](const Range& range) { return range.begin >= *end; });
    for (Range& range : out) range.end = std::min(range.end, *end);
  }
  return out;
}

}  // namespace

// Another pass: what was read in the one before may have been evicted. Not for readers that follow
// each other through the file.
void StridePlanner::begin_again(PlannedFile& file, uint64_t reader, Range range) {
  const auto known = file.readers.find(reader);
  if (!leads(file) || known == file.readers.end() || file.readers.size() > 1) return;
  if (range.end > file.size / kBeginning || !file.coverage.read().contains(range)) return;
  if (known->second.strides.position() < file.size / 2) return;
  file.readers.clear();
  file.coverage = {};
  file.shared = false;
}

StridePlanner::Match StridePlanner::on_read(PlannedFile& file, const Access& access) {
  const auto known = file.readers.find(access.reader);
  if (known == file.readers.end() && file.readers.size() >= kMaxReaders) {
    file.readers.erase(std::min_element(
        file.readers.begin(), file.readers.end(), [](const auto& a, const auto& b) {
          return a.second.strides.last_ns() < b.second.strides.last_ns();
        }));
  }
  const Range range{access.offset, access.offset + access.length};
  begin_again(file, access.reader, range);
  StridedReader& reader = file.readers[access.reader];
  reader.session = access.session;
  Match match{reader.predicted() || reader.descents.active(), reader.descents.on_read(range)};
  note_readers(file);
  bool changed = !reader.strides.on_read(range, access.time_ns) && !reader.shares.partial();
  if (!file.tensors.empty() && reader.shares.on_read(file.tensors, range, access.time_ns)) {
    note_readers(file);
    changed = true;
  }
  if (changed) {
    reader.cursor = {};
    match.expected = match.descent;
  }
  return match;
}

void StridePlanner::on_tensors(PlannedFile& file) {
  for (auto& [id, reader] : file.readers) {
    for (const Range& run : reader.strides.runs()) {
      reader.shares.on_read(file.tensors, run, reader.strides.last_ns());
    }
  }
}

void StridePlanner::note_readers(PlannedFile& file) {
  file.shared = file.descended = false;
  for (const auto& [id, reader] : file.readers) {
    file.shared |= reader.shares.partial();
    file.descended |= reader.descents.active();
  }
}

uint64_t StridePlanner::window(const PlannedFile& file, const StridedReader& reader) const {
  double rate = queue_.of(file).model.bandwidth();
  if (reader.strides.rate() > 0) rate = std::min(rate, 2 * reader.strides.rate());
  return std::min(
      std::clamp(static_cast<uint64_t>(kWindowSeconds * rate), kLeastWindow, kMostWindow),
      accounts_.budget(reader.session) / kShare);
}

std::vector<Range> StridePlanner::expected(const PlannedFile& file,
                                           const StridedReader& reader) const {
  if (!reader.shares.partial() || !reader.shares.unordered()) {
    return ahead(file, reader, window(file, reader));
  }
  // In no order that is known: bounded by what was read, and as most of it may stay for long, by
  // half of the budget.
  const uint64_t read = reader.shares.bytes();
  const uint64_t most = read + std::min(kUnordered * read, accounts_.budget(reader.session) / 2);
  return reader.shares.expected(file.tensors, reader.cursor.frontier,
                                most - std::min(most, reader.begun));
}

std::optional<Range> StridePlanner::next(FileId id, PlannedFile& file, StridedReader& reader) {
  if (reader.shares.partial() && reader.shares.unordered()) {
    // Before what it may read at any time: the rest of what it reads now.
    Range share = reader.shares.current(file.tensors);
    if (share.begin != reader.current_begin) reader.current = {};
    reader.current_begin = share.begin;
    const uint64_t most = std::max(reader.current.frontier, share.begin) + window(file, reader);
    share.end = std::min(share.end, most);
    if (const auto piece = gaps_.next(id, file, reader.session, share, &reader.current))
      return piece;
  }
  for (const Range& range : expected(file, reader)) {
    if (!reader.predicted() || reader.descents.active())
      reader.cursor = {};  // places of which each may come first
    if (const auto piece = gaps_.next(id, file, reader.session, range, &reader.cursor))
      return piece;
  }
  return std::nullopt;
}

// True: a read was begun.
bool StridePlanner::plan_one(FileId id, PlannedFile& file, StridedReader& reader, uint64_t now_ns,
                             std::vector<PlannedRead>* reads) {
  const Accounts::Session* session = accounts_.find(reader.session);
  if (session == nullptr || !session->prefetch || session->options.size != 0) return false;
  if (!active(reader, kIdleNs, now_ns)) return false;
  const bool ordered = reader.predicted() || reader.descents.active();
  if (!ordered && file.tracker.random()) return false;
  if (file.instant >= kInstantRun) return false;  // all of it seems to be cached
  const std::optional<Range> piece = next(id, file, reader);
  if (!piece) return false;
  if (!accounts_.room(reader.session, piece->length())) {
    accounts_.set_starved(true);
    return false;
  }
  queue_.start({id, reader.session, kStrideStream, *piece}, now_ns, reads);
  reader.begun += piece->length();
  return true;
}

// In turns, so that no reader waits until all that another one is expected to read was begun.
void StridePlanner::plan(uint64_t mount_id, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  const Mount& mount = queue_.mounts().at(mount_id);
  for (auto& [id, file] : files_) {
    if (file.mount != mount_id || !file.usable || !leads(file)) continue;
    for (bool more = true; more;) {
      more = false;
      for (auto& [reader_id, reader] : file.readers) {
        if (mount.idle(now_ns) == 0) return;
        more |= plan_one(id, file, reader, now_ns, reads);
      }
    }
  }
}

bool StridePlanner::predicts(const PlannedFile& file, uint64_t now_ns) {
  return leads(file) &&
         std::any_of(file.readers.begin(), file.readers.end(), [&](const auto& entry) {
           return entry.second.predicted() && active(entry.second, kIdleNs, now_ns);
         });
}

bool StridePlanner::whole(const PlannedFile& file) {
  if (file.tensors.empty()) return true;
  return !file.shared && std::any_of(file.readers.begin(), file.readers.end(),
                                     [](const auto& entry) { return entry.second.shares.known(); });
}

IntervalSet StridePlanner::needed(const PlannedFile& file, uint64_t idle_ns, uint64_t now_ns) {
  IntervalSet out;
  if (file.sequel_until_ns > now_ns) out.add({0, file.sequel_cursor.frontier});
  const bool any = std::ranges::any_of(
      file.readers, [&](const auto& entry) { return active(entry.second, idle_ns, now_ns); });
  if (file.heads_wanted && any) {
    for (const Tensor& tensor : file.tensors) {
      out.add({tensor.bytes.begin, tensor.bytes.begin + 1});
    }
  }
  if (!leads(file)) return out;
  for (const auto& [id, reader] : file.readers) {
    if (!active(reader, idle_ns, now_ns)) continue;
    if (reader.shares.partial() && reader.shares.unordered()) out.add({0, file.size});
    for (const Range& part : ahead(file, reader, kMostWindow)) out.add(part);
  }
  return out;
}

void StridePlanner::watch(const PlannedFile& file, uint64_t id, std::vector<ObservedStream>* out) {
  const auto known = file.readers.find(id);
  if (!leads(file) || known == file.readers.end()) return;
  const StridedReader& reader = known->second;
  const std::vector<Range> expected = ahead(file, reader, kLeastWindow);
  ObservedStream at{reader.strides.position(), 0, reader.strides.rate(), true};
  at.frontier = at.position;
  for (const Range& range : expected) at.frontier += range.length();
  out->push_back(at);
  for (size_t i = 0; i < std::min(expected.size(), kWatched); ++i) {
    out->push_back({expected[i].begin, expected[i].end, 0, true});
  }
}

}  // namespace sluice::policy
