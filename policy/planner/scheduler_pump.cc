// The part of the scheduler that starts and completes reads, and drops pages behind readers.
#include <algorithm>

#include "policy/planner/scheduler.h"
#include "protocol/page.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kProbe = 4 << 20;      // bytes that one query of residency covers
constexpr uint64_t kMaxSkip = 512 << 20;  // cached bytes skipped in one call
constexpr uint64_t kLargeRead = 512 << 10;
constexpr uint64_t kLargeReads = 4;       // times the bytes in flight: the reader's least distance
constexpr uint32_t kInstantRun = 16;      // instant reads in a row: the file is cached
constexpr uint64_t kInstantNs = 150'000;  // no network mount answers as fast as this
constexpr uint64_t kInstantRate = 8;      // bytes for each further nanosecond that is allowed
constexpr uint64_t kSampled = 15;         // times a read's length are assumed cached after it
constexpr uint64_t kDropStep = 4 << 20;
constexpr uint64_t kDropSlack = 1 << 20;  // retained right behind the slowest reader
constexpr uint64_t kIdleNs = 30'000'000'000;
constexpr uint64_t kOrphanIdleNs = 5'000'000'000;  // a stream idle for longer may lose its pages
constexpr uint64_t kSingleIdleNs = 1'000'000'000;  // likewise for single accesses
constexpr uint64_t kOrphansNs = 50'000'000;        // between searches for pages without a reader

}  // namespace

std::vector<Scheduler::Candidate> Scheduler::candidates(uint64_t mount) {
  std::vector<Candidate> out;
  for (auto& [id, file] : files_) {
    if (file.mount != mount || !file.usable) continue;
    for (const Stream& stream : file.tracker.streams()) {
      const auto planned = file.plans.find(stream.id);
      if (planned == file.plans.end()) continue;
      const auto session = sessions_.find(stream.session);
      if (session == sessions_.end() || !session->second.prefetch) continue;
      const StreamPlan& plan = planned->second.plan;
      if (plan.frontier() >= plan.target()) continue;
      const double lead =
          static_cast<double>(plan.frontier()) - static_cast<double>(stream.position);
      out.push_back({id, stream.id, lead / std::max(stream.rate, 1e6)});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Candidate& a, const Candidate& b) { return a.urgency < b.urgency; });
  return out;
}

// The next piece at the stream's frontier that is not cached, at most one block and ending at a
// block's boundary. Moves the frontier over what is cached.
std::optional<Range> Scheduler::next_range(uint32_t id, File& file, const Stream& stream,
                                           Planned& planned) {
  StreamPlan& plan = planned.plan;
  const Mount& mount = mounts_.at(file.mount);
  uint64_t block = mount.model.block();
  // Far ahead of the reader no thread waits for a single block: fewer, larger reads cost less.
  const uint64_t pipe = block * mount.in_flight;
  const bool large = plan.frontier() > stream.opened + kLargeReads * pipe && block < kLargeRead;
  if (large) block = kLargeRead;
  uint64_t skipped = 0;
  const auto skip = [&](uint64_t to) {
    count(stream.session, SessionMetric::already_cached_bytes,
          file.found.add({plan.frontier(), to}));
    const uint64_t bytes = to - plan.frontier();
    skipped += bytes;
    plan.advance(to);
    plan.on_filled(stream, bytes, input(file, stream));
  };
  while (plan.frontier() < plan.target() && skipped < kMaxSkip) {
    const uint64_t at = plan.frontier();
    if (at >= file.size) {  // the file was truncated since the target was set
      plan.advance(plan.target());
      break;
    }
    // Where the kernel does not reveal what is cached, a run of instant reads does: then one read
    // in every few checks whether that still holds, instead of copying all cached data once more.
    if (file.instant >= kInstantRun && at < planned.trusted_until) {
      skip(std::min(planned.trusted_until, plan.target()));
      continue;
    }
    if (const auto mine = file.ready.find(stream.session); mine != file.ready.end()) {
      const uint64_t gap = mine->second.first_gap(at);  // prefetched for another stream
      if (gap > at) {
        plan.advance(std::min(gap, plan.target()));
        continue;
      }
    }
    const Range piece{at, std::min({(at / block + 1) * block, plan.target(), file.size})};
    if (large && !plan.fixed() && piece.end % block != 0 && piece.end != file.size) {
      return std::nullopt;  // the reader's next steps will complete the block
    }
    if (piece.end > planned.probed_until) {
      // A query far ahead first: mostly all of the range is cached, or nothing.
      const Range far{at, std::min({at + kProbe, std::max(plan.target(), piece.end), file.size})};
      const uint64_t cached = residency_->cached(id, far);
      if (cached >= far.length()) {
        skip(far.end);
        continue;
      }
      if (cached == 0) {
        planned.probed_until = far.end;
      } else if (far.length() > piece.length() && residency_->cached(id, piece) >= piece.length()) {
        skip(piece.end);
        continue;
      }
    }
    return piece;
  }
  return std::nullopt;
}

void Scheduler::plan(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  for (auto& [mount_id, mount] : mounts_) {
    if (mount.in_flight >= mount.model.depth(now_ns)) continue;
    for (const Candidate& candidate : candidates(mount_id)) {
      File& file = files_.at(candidate.file);
      Stream* stream = file.tracker.find(candidate.stream);
      Planned& planned = file.plans.at(candidate.stream);
      while (mount.in_flight < mount.model.depth(now_ns)) {
        const auto range = next_range(candidate.file, file, *stream, planned);
        if (!range) break;
        if (!room(stream->session, range->length())) {
          starved_ = true;
          break;
        }
        start({candidate.file, candidate.stream, stream->session, mount_id, *range, {}, 0}, now_ns,
              reads);
        planned.plan.advance(range->end);
        planned.trusted_until = range->end + kSampled * range->length();
        planned.in_flight += range->length();
      }
    }
  }
  if (samples_ != nullptr) plan_samples(now_ns, reads);
}

void Scheduler::start(Request request, uint64_t now_ns, std::vector<PlannedRead>* reads) {
  Mount& mount = mounts_.at(request.mount);
  File& file = files_.at(request.file);
  const uint64_t length = request.range.length();
  request.sample = mount.model.on_issue(now_ns, mount.in_flight);
  const uint64_t token = next_token_++;
  reads->push_back({token, request.file, request.range});
  requests_.emplace(token, request);
  ++mount.in_flight;
  mount.in_flight_bytes += length;
  mount.gathered += request.gathered;
  ++file.in_flight;
  file.flying.add(request.range);
  outstanding_ += length;
  sessions_.at(request.session).outstanding += length;
}

void Scheduler::on_done(uint64_t token, uint64_t bytes, int error, uint64_t now_ns) {
  const auto at = requests_.find(token);
  if (at == requests_.end()) return;
  const Request request = at->second;
  requests_.erase(at);
  outstanding_ -= request.range.length();
  const auto session = sessions_.find(request.session);
  if (session != sessions_.end()) session->second.outstanding -= request.range.length();
  Mount& mount = mounts_.at(request.mount);
  --mount.in_flight;
  mount.in_flight_bytes -= request.range.length();
  mount.gathered -= request.gathered;
  const uint64_t took = now_ns - std::min(now_ns, request.sample.issued_ns);
  const bool instant = took < kInstantNs + bytes / kInstantRate && !residency_->known(request.file);
  // A read answered by the page cache says nothing about the storage; a stream's counts
  // nevertheless, since streams learn their pace from it.
  const bool tells = error == 0 && (!instant || request.stream != 0);
  if (tells) mount.model.on_done(request.sample, static_cast<uint32_t>(bytes), now_ns);
  const auto file_at = files_.find(request.file);
  if (file_at == files_.end()) return;
  File& file = file_at->second;
  --file.in_flight;
  file.flying.remove(request.range);
  const std::vector<Range> called = file.called.pieces_in(request.range);
  file.called.remove(request.range);
  if (error != 0) count(request.session, SessionMetric::read_errors, 1);
  const auto planned = file.plans.find(request.stream);
  if (planned != file.plans.end()) planned->second.in_flight -= request.range.length();
  const Range got{request.range.begin, request.range.begin + bytes};
  if (session == sessions_.end() || bytes == 0) return;
  if (!residency_->known(request.file)) {
    file.instant = instant ? std::min(file.instant + 1, kInstantRun) : 0;
    if (instant) {
      count(request.session, SessionMetric::package_used_bytes, file.beside.remove(got));
      count(request.session, SessionMetric::already_cached_bytes, file.found.add(got));
      const Stream* ahead = file.tracker.find(request.stream);
      if (ahead != nullptr && planned != file.plans.end()) {
        planned->second.plan.on_filled(*ahead, bytes, input(file, *ahead));
      }
      return;
    }
    if (request.stream == 0 && is_assumed_cached(file, request.range))
      assume_evicted(file, request.range);
  }
  count(request.session, SessionMetric::precached_bytes, bytes);

  const Stream* stream = file.tracker.find(request.stream);
  const uint64_t passed =
      stream == nullptr ? got.begin : std::clamp(stream->position, got.begin, got.end);
  if (passed > got.begin && drops_behind(file.size, request.session)) {
    file.behind.add({got.begin, passed});
  }
  uint64_t fresh = 0;
  IntervalSet& ready = file.ready[request.session];
  if (request.stream != 0) {
    fresh = ready.add({passed, got.end});
  } else {
    for (const Range& piece : called) {
      if (piece.begin < got.end) fresh += ready.add({piece.begin, std::min(piece.end, got.end)});
    }
    got_beside(request.file, file, request.session, got, called);
  }
  outstanding_ += fresh;
  session->second.outstanding += fresh;
  if (stream != nullptr && planned != file.plans.end()) {
    planned->second.plan.on_filled(*stream, bytes, input(file, *stream));
  }
}

uint64_t Scheduler::refill_ns(uint64_t now_ns) const {
  uint64_t shortest = 0;
  for (const auto& [id, mount] : mounts_) {
    if (mount.in_flight == 0) continue;
    const double rate = mount.model.bandwidth();
    if (mount.in_flight < 2 * StorageModel::kMinDepth || rate <= 0) return 0;
    const double bytes = static_cast<double>(mount.in_flight_bytes) / 4;
    const auto interval = static_cast<uint64_t>(bytes * 1e9 / rate);
    if (mount.model.starting() || mount.in_flight < mount.model.depth(now_ns) / 2) return 0;
    shortest = shortest == 0 ? interval : std::min(shortest, interval);
  }
  return shortest;
}

bool Scheduler::needed(const File& file, Range range, uint64_t idle_ns, uint64_t now_ns) const {
  for (const Stream& stream : file.tracker.streams()) {
    const uint64_t quiet = now_ns - std::min(now_ns, stream.last_ns);
    if (quiet > (stream.confirmed ? idle_ns : kSingleIdleNs)) continue;
    const uint64_t tail = stream.tail(now_ns, idle_ns);
    const auto planned = file.plans.find(stream.id);
    uint64_t end = stream.opened;
    if (planned != file.plans.end()) end = std::max(end, planned->second.plan.target());
    if (range.end + kDropSlack > tail && range.begin < end) return true;
  }
  return false;
}

void Scheduler::drop_behind(uint32_t id, File& file, uint64_t now_ns,
                            std::vector<PlannedDrop>* drops) {
  for (const Range& piece : file.behind.pieces()) {
    // Steps at fixed offsets, so that a range grows to a worthwhile size before it is dropped.
    for (uint64_t begin = piece.begin; begin < piece.end;) {
      const Range step{begin, std::min((begin / kDropStep + 1) * kDropStep, piece.end)};
      begin = step.end;
      if (step.end % kDropStep != 0 && step.end != file.size) continue;
      if (file.mapped && !file.zapped.contains(step)) continue;
      if (needed(file, step, kIdleNs, now_ns)) continue;
      drops->push_back({id, {step.begin / kPage * kPage, step.end}});
      file.behind.remove(step);
      file.zapped.remove(step);
    }
  }
}

// By file: what was read for samples that no job has begun yet.
std::map<uint32_t, IntervalSet> Scheduler::wanted_by_samples(uint64_t* visited) const {
  std::map<uint32_t, IntervalSet> wanted;
  if (samples_ == nullptr) return wanted;
  samples_->for_each_ahead([&](const Extent& part) {
    ++*visited;
    if (is_whole(part)) return;
    const uint64_t end = (part.offset + part.length + kPage - 1) / kPage * kPage;
    wanted[part.file].add({part.offset / kPage * kPage, end});
  });
  return wanted;
}

void Scheduler::drop_orphans(uint32_t id, File& file, const IntervalSet& wanted, uint64_t now_ns,
                             std::vector<PlannedDrop>* drops) {
  for (auto& [session, ready] : file.ready) {
    for (const Range& piece : ready.pieces()) {
      for (uint64_t begin = piece.begin; begin < piece.end;) {
        const Range step{begin, std::min((begin / kDropStep + 1) * kDropStep, piece.end)};
        begin = step.end;
        if (needed(file, step, kOrphanIdleNs, now_ns) || wanted.covered(step) != 0) continue;
        drops->push_back({id, step});
        release_ready(file, session, step, SessionMetric::precached_unused_bytes);
      }
    }
  }
}

void Scheduler::drops(uint64_t now_ns, std::vector<PlannedDrop>* drops) {
  // Visiting all orders takes time, and memory that is short mostly stays short.
  const bool orphans = starved_ && now_ns >= next_orphans_ns_;
  std::map<uint32_t, IntervalSet> wanted;
  uint64_t visited = 0;
  if (orphans) wanted = wanted_by_samples(&visited);
  for (auto& [id, file] : files_) {
    if (!file.behind.empty()) {
      drop_behind(id, file, now_ns, drops);
    } else if (!drops_behind(file.size, file.last_session)) {
      file.zapped.clear();
    }
    if (orphans) drop_orphans(id, file, wanted[id], now_ns, drops);
  }
  drop_records(now_ns, drops);
  if (!orphans) return;
  starved_ = false;
  next_orphans_ns_ = now_ns + kOrphansNs;
}

void Scheduler::on_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns) {
  if (drop.why == PlannedDrop::kSpent) on_spent_dropped(drop, left, now_ns);
  const auto at = files_.find(drop.file);
  if (at == files_.end()) return;
  File& file = at->second;
  const Range range = drop.range;
  count(file.last_session, SessionMetric::dropped_bytes,
        range.length() - std::min(range.length(), left));
  // Another process still maps these pages: they are retried when it unmaps them, too.
  if (drop.why == PlannedDrop::kBehind && file.mapped && left * 2 > range.length() &&
      drops_behind(file.size, file.last_session)) {
    file.behind.add(range);
  }
}

void Scheduler::on_lost(uint32_t id, uint64_t lost) {
  const auto at = files_.find(id);
  if (at != files_.end()) count(at->second.last_session, SessionMetric::precache_lost_bytes, lost);
}

}  // namespace sluice::optimizer
