#include "policy/planner/record_store.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kLongest = 1 << 20;   // bytes of one read
constexpr unsigned kMostWaiting = 2048;  // records that start to wait in one call

}  // namespace

Demand RecordStore::demand(const PlannedFile& file, SessionId session, uint64_t bytes) const {
  const StorageModel& model = queue_.of(file).model;
  return file.by_page.contains(session) ? model.page_demand(bytes) : model.record_demand(bytes);
}

bool RecordStore::is_there(FileId file_id, PlannedFile& file, SessionId session, Range range) {
  if (residency_.cached(file_id, range) < range.length()) {
    if (residency_.known(file_id)) file.pages.on(PageEvent::kNotCached, range);
    return false;
  }
  // It was read together with another record, and now its turn has come.
  if (const uint64_t neighbours = file.pages.covered(range, kNeighbour); neighbours != 0) {
    accounts_.charge(session, file.pages.on(PageEvent::kPrefetched, range, session).bytes);
    accounts_.count(session, SessionMetric::package_used_bytes, neighbours);
  } else {
    accounts_.count(session, SessionMetric::already_cached_bytes,
                    file.pages.on(PageEvent::kFoundCached, range).bytes);
  }
  return true;
}

FetchVerdict RecordStore::judge(SessionId session, const Extent& part, uint64_t now_ns) {
  const auto at = files_.find(part.file.followed());
  const bool usable = at != files_.end() && at->second.usable;
  if (!usable && residency_.awaited(part.file.followed())) return FetchVerdict::kLater;
  if (!usable || !accounts_.prefetches(session) || part.offset >= at->second.size) {
    return FetchVerdict::kNever;
  }
  PlannedFile& file = at->second;
  const Range range = pages_of(part, file.size);
  const uint64_t coming = file.pages.covered(range, kReading | kWaiting);
  if (file.pages.ready(session, range) + coming >= range.length()) {
    file.pages.on(PageEvent::kWanted, range);
    return FetchVerdict::kNever;
  }
  if (file.pages.covered(range, kDropping) != 0) return FetchVerdict::kLater;
  if (is_there(at->first, file, session, range)) return FetchVerdict::kNever;
  // There will never be room for it, and the samples behind it must not wait for that.
  if (range.length() > accounts_.budget(session)) return FetchVerdict::kTooLarge;
  const Mount& mount = queue_.of(file);
  const unsigned most =
      runs_.gathers(at->first, session, range) ? kMostWaiting : mount.idle(now_ns);
  if (mount.reserved >= most) return FetchVerdict::kLater;
  if (accounts_.room(session, range.length())) return FetchVerdict::kTake;
  accounts_.set_starved(true);
  return FetchVerdict::kLater;
}

void RecordStore::take(const WantedExtent& wanted, uint64_t now_ns) {
  const FileId id = wanted.extent.file.followed();
  PlannedFile& file = files_.at(id);
  Mount& mount = queue_.of(file);
  const Range own = pages_of(wanted.extent, file.size);
  if (take_group(wanted)) return;
  if (runs_.gathers(id, wanted.session, own)) {
    runs_.wait(wanted, own);
    ++mount.reserved;
    return;
  }
  const Range range = runs_.run_around(wanted, own, now_ns);
  file.pages.on(PageEvent::kReadBegun, range);  // so that no other sample reads it again
  file.pages.on(PageEvent::kWanted, own);
  taken_.push_back({id, wanted.session, taken_.size(), range});
  mount.reserved += static_cast<unsigned>((range.length() - 1) / kLongest + 1);
  accounts_.reserve(wanted.session, range.length());
}

// What is missing of the group's records, with gaps between them that cost less than another
// request. A gap contains nothing that is in memory for a sample.
std::vector<Range> RecordStore::reads_of(const PlannedFile& file,
                                         std::span<const Extent> group) const {
  IntervalSet missing;
  for (const Extent& record : group) missing.add(pages_of(record, file.size));
  const Range hull{missing.empty() ? 0 : missing.pieces().front().begin,
                   missing.empty() ? 0 : missing.pieces().back().end};
  for (const Range& piece : file.pages.pieces(hull, kReading | kWaiting | kReady)) {
    missing.remove(piece);
  }
  const uint64_t most_gap = queue_.of(file).largest_gap(kPage);
  std::vector<Range> reads;
  for (const Range& piece : missing.pieces()) {
    const Range gap{reads.empty() ? 0 : reads.back().end, piece.begin};
    if (!reads.empty() && gap.length() <= most_gap &&
        file.pages.covered(gap, kReading | kWaiting | kReady | kDropping) == 0) {
      reads.back().end = piece.end;
    } else {
      reads.push_back(piece);
    }
  }
  return reads;
}

bool RecordStore::take_group(const WantedExtent& wanted) {
  if (samples_ == nullptr) return false;
  RecordGroups& groups = samples_->groups();
  std::vector<Extent> group = groups.find(wanted.session, wanted.extent);
  const FileId id = wanted.extent.file.followed();
  PlannedFile& file = files_.at(id);
  const Range own = pages_of(wanted.extent, file.size);
  // What is ready for another session may be evicted, unseen: the record is read as any other.
  const bool others = file.pages.covered(own, kReady) != file.pages.ready(wanted.session, own);
  std::vector<Range> reads;
  uint64_t bytes = 0;
  for (bool fits = false; !fits; group.resize(fits ? group.size() : group.size() / 2)) {
    if (group.empty() || others) return false;
    reads = reads_of(file, group);
    bytes = 0;
    for (const Range& read : reads) {
      if (file.pages.covered(read, kDropping) != 0) return false;  // with a later one of them
      bytes += read.length();
    }
    fits = accounts_.room(wanted.session, bytes);
  }
  groups.take(wanted.session, group);
  for (const Range& read : reads) {
    file.pages.on(PageEvent::kReadBegun, read);
    taken_.push_back({id, wanted.session, taken_.size(), read});
    queue_.of(file).reserved += static_cast<unsigned>((read.length() - 1) / kLongest + 1);
  }
  // Of the gaps no sample needs anything.
  for (const Extent& record : group) {
    file.pages.on(PageEvent::kWanted, pages_of(record, file.size));
  }
  accounts_.reserve(wanted.session, bytes);
  return true;
}

// Samples that are taken in one call and are neighbours are merged, up to the length of one read:
// the earliest needed comes first, and its neighbours with it.
std::vector<RecordStore::Taken> RecordStore::merged(std::vector<Taken> taken) {
  std::sort(taken.begin(), taken.end(), [](const Taken& a, const Taken& b) {
    return std::tie(a.session, a.file, a.range.begin) < std::tie(b.session, b.file, b.range.begin);
  });
  std::vector<Taken> merged;
  for (const Taken& next : taken) {
    Taken* last = merged.empty() ? nullptr : &merged.back();
    const bool meets = last != nullptr && last->session == next.session &&
                       last->file == next.file && last->range.end >= next.range.begin;
    if (meets && std::max(last->range.end, next.range.end) - last->range.begin <= kLongest) {
      last->range.end = std::max(last->range.end, next.range.end);
      last->turn = std::min(last->turn, next.turn);
      continue;
    }
    Taken own = next;
    // A page that both samples need is read with the first of them.
    if (meets) own.range.begin = std::min(last->range.end, own.range.end);
    merged.push_back(own);
  }
  std::sort(merged.begin(), merged.end(),
            [](const Taken& a, const Taken& b) { return a.turn < b.turn; });
  return merged;
}

void RecordStore::start(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  for (auto& [id, mount] : queue_.mounts()) mount.reserved = 0;
  accounts_.end_reservations();
  for (const Taken& one : merged(std::exchange(taken_, {}))) {
    for (uint64_t begin = one.range.begin; begin < one.range.end; begin += kLongest) {
      const Range piece{begin, std::min(begin + kLongest, one.range.end)};
      queue_.start({one.file, one.session, 0, piece}, now_ns, reads);
    }
  }
  runs_.start_waiting(now_ns, reads);
}

std::optional<Presence> RecordStore::presence(SessionId session, const Extent& part,
                                              bool own_order) {
  const auto at = files_.find(part.file.followed());
  if (at == files_.end()) return std::nullopt;
  const PlannedFile& file = at->second;
  const Range range = pages_of(part, file.size);
  Presence found;
  found.wanted = range.length();
  found.here = file.pages.covered(range, kReady | kFound);
  // Possibly evicted since it was last read, which nothing has reported.
  if (found.here < found.wanted && file.pages.contains(range, kReady | kFound | kRead) &&
      residency_.cached(at->first, range) >= found.wanted) {
    found.here = found.wanted;
  }
  found.coming = file.pages.covered(range, kReading | kWaiting);
  if (own_order) found.missing = demand(file, session, found.wanted - found.here);
  return found;
}

Hit RecordStore::on_read(SessionId session, const Extent& part) {
  if (samples_ != nullptr) samples_->groups().pass(session, part);
  const auto at = files_.find(part.file.followed());
  if (at == files_.end()) return {};
  PlannedFile& file = at->second;
  file.last_session = session;
  file.pages.limit_size();
  uint64_t found = 0, ready = 0;
  for (const Range& range : own_pages(session, part)) {
    const auto read = file.pages.on(PageEvent::kSampleRead, range);
    for (const auto& [owner, bytes] : read.ready) accounts_.use(owner, bytes);
    found += read.had(kFound);
    ready += read.had(kReady);
  }
  return {0, found, demand(file, session, ready)};
}

// Without the pages that it shares with records of its chunk, which wait for them. What has bytes
// of the record itself is the same sample, known from elsewhere, or known as pages only.
std::vector<Range> RecordStore::own_pages(SessionId session, const Extent& part) const {
  const FileId file = part.file.followed();
  const uint64_t size = files_.at(file).size;
  const Range pages = pages_of(part, size);
  if (samples_ == nullptr || samples_->groups().empty()) return {pages};
  IntervalSet own;
  own.add(pages);
  for (const Extent& other : samples_->groups().taken_in(session, file, pages.begin, pages.end)) {
    const bool overlaps =
        other.offset < part.offset + part.length && part.offset < other.offset + other.length;
    if (!overlaps) own.remove(pages_of(other, size));
  }
  return own.pieces_in(pages);
}

double RecordStore::parallel_ns(const Extent& part) const {
  const auto at = files_.find(part.file.followed());
  const double rate = at == files_.end() ? 0 : queue_.of(at->second).model.bandwidth();
  return rate > 0 ? part.length * 1e9 / rate : 0;
}

}  // namespace sluice::policy
