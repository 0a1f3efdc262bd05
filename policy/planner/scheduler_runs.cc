// The part of the scheduler that reads runs of neighbouring records with one request, where a
// request costs as much as many bytes. A run of the file is a package of records (iCache, HPCA '23,
// section III-C, writes packages for that, which LMDB's order makes unnecessary).
//
// Of a file that fits into memory, the neighbours of a record are read with it, since their turn
// comes; until then they are in `beside`. Of a file that does not fit, records that are needed soon
// wait for each other (gatherer.h), and the pages between them are dropped.
#include <algorithm>
#include <bit>

#include "policy/planner/scheduler.h"
#include "protocol/page.h"

namespace sluice::optimizer {
namespace {
constexpr uint64_t kSpared = 8;           // times RequestCost::worth(): the longest run
constexpr uint64_t kTurnNs = 20'000'000;  // during which runs have one length
constexpr uint64_t kTurns = 8;            // in one of so many, runs are shorter
constexpr uint64_t kShort = 4;            // by this factor: lets RequestCost separate its terms
constexpr uint64_t kMostGap = 8;          // times what is wanted: the largest gap
constexpr size_t kMostBeside = 1 << 16;   // pieces of one file

}  // namespace

// Bytes of all files of records that the session reads, this one included.
uint64_t Scheduler::record_bytes(uint32_t id, uint32_t file_id, const File& file) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end() || samples_ == nullptr) return file.size;
  Session& session = at->second;
  if (session.seen_change != record_changes_) {
    session.seen_change = record_changes_;
    session.record_files.clear();
    for (const auto& [dataset, set] : record_sets_) {
      if (samples_->uses(id, dataset)) {
        session.record_files.insert(set.files.begin(), set.files.end());
      }
    }
    session.record_bytes = 0;
    for (const uint32_t other : session.record_files) {
      session.record_bytes += files_.at(other).size;
    }
  }
  const bool counted = session.record_files.count(file_id) != 0;
  return session.record_bytes + (counted ? 0 : file.size);
}

// A limit applies to what records of the file may take in memory.
bool Scheduler::is_bounded(uint32_t file) {
  return std::any_of(record_sets_.begin(), record_sets_.end(), [&](const auto& entry) {
    return entry.second.files.count(file) != 0 && record_limit(entry.first) != 0;
  });
}

bool Scheduler::stays(uint32_t file_id, const File& file, uint32_t session) {
  return !drops_behind(record_bytes(session, file_id, file), session) && !is_bounded(file_id);
}

// The kernel splits a longer read into several requests.
uint64_t Scheduler::longest_run(uint64_t mount) const { return mounts_.at(mount).model.block(); }

uint64_t Scheduler::waiting_bytes(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? 0 : at->second.waiting.bytes();
}

// Half of the gap that would pay, and not many times what is wanted: no sample needs these bytes,
// and other readers share what is left of the link.
uint64_t Scheduler::gather_gap(uint64_t mount, uint64_t bytes) const {
  return std::min(mounts_.at(mount).model.cost().worth() / 2, kMostGap * bytes);
}

// The kernel splits a read at pages that are cached: a range that is to be one request must contain
// none.
bool Scheduler::is_missing(uint32_t file_id, const File& file, Range range) {
  if (range.length() == 0) return true;
  if (file.flying.covered(range) != 0) return false;
  return residency_->exact(file_id) ? residency_->cached(file_id, range) == 0
                                    : !is_assumed_cached(file, range);
}

// Where the kernel does not reveal residency: part of the range was read, by Sluice or by a sample.
bool Scheduler::is_assumed_cached(const File& file, Range range) {
  const auto covers = [&](const IntervalSet& set) { return set.covered(range) != 0; };
  return covers(file.beside) || covers(file.reread) || covers(file.found) ||
         std::any_of(file.ready.begin(), file.ready.end(),
                     [&](const auto& entry) { return covers(entry.second); });
}

// The read took as long as storage does: what was assumed cached is not, nor what surrounds it.
void Scheduler::assume_evicted(File& file, Range range) {
  const uint64_t length = longest_run(file.mount);
  const Range around{range.begin / length * length, (range.end + length - 1) / length * length};
  file.beside.remove(around);
  file.reread.remove(around);
  file.found.remove(around);
}

// Whether the record may wait for nearby records that are needed soon.
bool Scheduler::gathers(uint32_t file_id, const File& file, uint32_t session, Range own) {
  return gather_gap(file.mount, own.length()) >= own.length() && residency_->exact(file_id) &&
         own.length() < longest_run(file.mount) && !stays(file_id, file, session);
}

// The record's pages (`own`) and, of a file that stays in memory, what is read with them. The share
// of the file that the epoch reads anyway is not wasted.
Range Scheduler::run_around(const WantedExtent& wanted, const File& file, Range own,
                            uint64_t now_ns) {
  const uint32_t id = wanted.extent.file;
  const auto worth = static_cast<double>(mounts_.at(file.mount).model.cost().worth());
  const auto bytes = static_cast<double>(own.length());
  const auto all = static_cast<double>(record_bytes(wanted.session, id, file));
  const double share = std::min(static_cast<double>(wanted.order) * bytes / all, 1.0);
  if ((1 - share) * bytes >= share * worth || !stays(id, file, wanted.session)) return own;
  // Where a query would cause reads, or the record is assumed to be cached, it is read alone.
  if (!residency_->exact(id) && (residency_->known(id) || is_assumed_cached(file, own))) return own;
  uint64_t length = std::bit_floor(longest_run(file.mount));
  while (length > kPage && static_cast<double>(length) > kSpared * worth) length /= 2;
  if (now_ns / kTurnNs % kTurns == 0) length /= kShort;
  const Range whole{own.begin / length * length,
                    std::min((own.end + length - 1) / length * length, file.size)};
  if (length <= own.length() || !room(wanted.session, whole.length())) return own;
  // Extended as far as pages are missing to the left, and to the right.
  Range run = own;
  for (uint64_t step = length / 2; step >= kPage; step /= 2) {
    const uint64_t left = run.begin - std::min(run.begin - whole.begin, step);
    if (is_missing(id, file, {left, run.begin})) run.begin = left;
    const uint64_t right = std::min(run.end + step, whole.end);
    if (is_missing(id, file, {run.end, right})) run.end = right;
  }
  return run;
}

// From here on the record counts as in flight.
void Scheduler::wait_for_others(const WantedExtent& wanted, File& file, Range range) {
  mounts_.at(file.mount).waiting.add(wanted, range);
  file.waiting.add(range);
  outstanding_ += range.length();
  sessions_.at(wanted.session).outstanding += range.length();
}

void Scheduler::uncharge(const WaitingRead& read) {
  outstanding_ -= read.range.length();
  const auto session = sessions_.find(read.wanted.session);
  if (session != sessions_.end()) session->second.outstanding -= read.range.length();
}

void Scheduler::give_up_waiting(const std::vector<WaitingRead>& gone) {
  for (const WaitingRead& read : gone) {
    uncharge(read);
    const auto at = files_.find(read.wanted.extent.file);
    if (at == files_.end()) continue;
    at->second.waiting.remove(read.range);
    at->second.called.remove(read.range);
  }
}

bool Scheduler::still_waits(const WantedExtent& wanted) const {
  const Extent& extent = wanted.extent;
  return extent.offset + extent.length <= files_.at(extent.file).size && samples_->is_ahead(wanted);
}

// Orders have changed: a read that no order wants must not count for a sample of the new order.
void Scheduler::purge_waiting() {
  if (seen_orders_ == samples_->changes()) return;
  seen_orders_ = samples_->changes();
  std::vector<WaitingRead> gone;
  for (auto& [id, mount] : mounts_) {
    mount.waiting.remove_unwanted(
        [this](const WantedExtent& wanted) { return still_waits(wanted); }, &gone);
  }
  give_up_waiting(gone);
}

void Scheduler::forget_waiting(uint32_t file) {
  std::vector<WaitingRead> gone;
  for (auto& [id, mount] : mounts_) mount.waiting.remove_file(file, &gone);
  give_up_waiting(gone);
}

// Only while at least as many bytes wait as are in flight: an early request has gathered little.
void Scheduler::start_waiting(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  std::vector<WaitingRead> gone;
  const Gatherer::IsWanted is_wanted = [this](const WantedExtent& wanted) {
    return still_waits(wanted);
  };
  for (auto& [id, mount] : mounts_) {
    const Gatherer::MayBridge may_bridge = [this, id = id](const WaitingRead& read, Range gap) {
      const uint32_t file = read.wanted.extent.file;
      return gap.length() <= gather_gap(id, read.range.length()) &&
             is_missing(file, files_.at(file), gap);
    };
    while (!mount.waiting.empty() && mount.waiting.bytes() >= mount.gathered &&
           mount.in_flight < mount.model.depth(now_ns)) {
      const auto group = mount.waiting.take(longest_run(id), may_bridge, is_wanted, &gone);
      if (!group.empty()) start_group(id, group, now_ns, reads);
    }
  }
  give_up_waiting(gone);
}

void Scheduler::start_group(uint64_t mount, const std::vector<WaitingRead>& group, uint64_t now_ns,
                            std::vector<PlannedRead>* reads) {
  const WantedExtent& first = group.front().wanted;
  const uint32_t file = first.extent.file;
  Range run = group.front().range;
  uint64_t bytes = 0;
  for (const WaitingRead& read : group) {
    uncharge(read);
    files_.at(file).waiting.remove(read.range);
    run = {std::min(run.begin, read.range.begin), std::max(run.end, read.range.end)};
    bytes += read.range.length();
  }
  if (room(first.session, run.length())) {
    start({file, 0, first.session, mount, run, {}, bytes}, now_ns, reads);
    return;
  }
  const Range own = group.front().range;
  start({file, 0, first.session, mount, own, {}, own.length()}, now_ns, reads);
  for (size_t i = 1; i < group.size(); ++i) {
    wait_for_others(group[i].wanted, files_.at(file), group[i].range);
  }
}

// Records what a run brought in beside the records that samples wait for.
void Scheduler::got_beside(uint32_t file_id, File& file, uint32_t session, Range got,
                           const std::vector<Range>& called) {
  file.beside.remove(got);
  IntervalSet beside;
  beside.add(got);
  uint64_t used = 0;
  for (const Range& piece : called) used += beside.remove(piece);
  if (beside.empty()) return;
  count(session, SessionMetric::packages_read, 1);
  count(session, SessionMetric::package_bytes, got.length());
  count(session, SessionMetric::package_used_bytes, used);
  if (file.beside.size() >= kMostBeside) file.beside.clear();
  const bool kept = stays(file_id, file, session);
  for (const Range& piece : beside.pieces()) {
    if (kept) {
      file.beside.add(piece);
    } else if (is_bounded(file_id)) {
      file.between.add(piece);
    }
  }
}

// The record was read together with another, and now its turn has come.
bool Scheduler::take_beside(File& file, uint32_t session, Range range) {
  const uint64_t bytes = file.beside.remove(range);
  if (bytes == 0) return false;
  const uint64_t fresh = file.ready[session].add(range);
  outstanding_ += fresh;
  sessions_.at(session).outstanding += fresh;
  count(session, SessionMetric::package_used_bytes, bytes);
  return true;
}

}  // namespace sluice::optimizer
