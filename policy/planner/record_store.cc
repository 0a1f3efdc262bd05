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
  const auto at = files_.find(part.file.followed());
  if (at == files_.end()) return {};
  PlannedFile& file = at->second;
  file.last_session = session;
  file.pages.limit_size();
  const auto read = file.pages.on(PageEvent::kSampleRead, pages_of(part, file.size));
  for (const auto& [owner, bytes] : read.ready) accounts_.use(owner, bytes);
  return {0, read.had(kFound), demand(file, session, read.had(kReady))};
}

double RecordStore::parallel_ns(const Extent& part) const {
  const auto at = files_.find(part.file.followed());
  const double rate = at == files_.end() ? 0 : queue_.of(at->second).model.bandwidth();
  return rate > 0 ? part.length * 1e9 / rate : 0;
}

}  // namespace sluice::policy
