#include "policy/planner/stream_planner.h"

#include <algorithm>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

constexpr uint64_t kPageModeSize = 50 << 20;  // the published default if a trip opens a single page
constexpr uint64_t kWindowBlocks = 2;         // kernel read-ahead of a stream
constexpr size_t kMaxReaders = 4096;          // remembered, over all files
constexpr uint64_t kMaxSkip = 512 << 20;      // cached bytes skipped in one call
constexpr uint64_t kLargeRead = 512 << 10;
constexpr uint64_t kLargeReads = 4;  // times the bytes in flight: the reader's least distance
constexpr uint64_t kSampled = 15;    // times a read's length are assumed cached after it
constexpr uint64_t kStartShare = 8;  // divisor of the file's size: what counts as its beginning
constexpr uint64_t kPassShare = 2;   // divisor: a pass has read at least this part

}  // namespace

Demand StreamPlanner::demand(const PlannedFile& file, SessionId session, uint64_t bytes) const {
  const StorageModel& model = queue_.of(file).model;
  return file.by_page.contains(session) ? model.page_demand(bytes) : model.demand(bytes);
}

PlanInput StreamPlanner::input(const PlannedFile& file, const Stream& stream) const {
  const StorageModel& model = queue_.of(file).model;
  uint32_t confirmed = 0;
  for (const Stream& other : file.tracker.streams()) confirmed += other.confirmed ? 1 : 0;
  PlanInput out{file.size, model.block(), model.bandwidth(), accounts_.budget(stream.session),
                confirmed};
  const auto reader = file.readers.find(stream.last_reader);
  if (reader == file.readers.end()) return out;
  const Shares& shares = reader->second.shares;
  if (const auto end = shares.first_end(file.tensors)) out.likely_end = *end;
  if (shares.known()) return out;
  if (const auto guess = shares.guess(file.tensors)) out.likely_end = guess->end;
  return out;
}

// The readers have moved over `range`: the prefetched part was of use, the rest came late.
void StreamPlanner::pass(PlannedFile& file, Range range, SessionId session, bool expected,
                         uint64_t now_ns) {
  uint64_t used = 0;
  const auto use = [&](const PageLedger::Changed& changed) {
    for (const auto& [owner, bytes] : changed.ready) accounts_.use(owner, bytes);
    used += changed.had(kReady);
    return changed.had(kFound);
  };
  for (const SessionId owner : file.pages.owners()) {
    if (accounts_.exceeds(file.size, owner)) {
      use(file.pages.on(PageEvent::kPassedForGood, range, owner));
    }
  }
  const uint64_t found = use(file.pages.on(PageEvent::kPassed, range));
  accounts_.hit(session, demand(file, session, used));
  note_pass(file, session, range, used + found);
  const uint64_t late = range.length() - used - found;
  accounts_.missed(session, demand(file, session, late));
  if (late == 0 || !expected) return;
  accounts_.count(session, SessionMetric::late_bytes, late);
  // Where a prefetch is in flight the reader waits for that, and sends storage no request.
  if (late > file.pages.covered(range, kReading)) queue_.of(file).model.on_stall(now_ns);
}

void StreamPlanner::note_pass(PlannedFile& file, SessionId id, Range range, uint64_t in_memory) {
  Accounts::Session* session = accounts_.find(id);
  if (session == nullptr) return;
  session->passed += range.length();
  session->passed_ready += std::min(in_memory, range.length());
  file.laps[id].bytes += range.length();
}

// A pass over one file counts as the session's: files that are read in turn make equally many.
void StreamPlanner::note_begin(PlannedFile& file, const Access& access) {
  Accounts::Session* session = accounts_.find(access.session);
  if (session == nullptr || access.offset >= file.size / kStartShare) return;
  PlannedFile::Lap& lap = file.laps[access.session];
  if (lap.bytes < file.size / kPassShare) return;
  // The cell that was open at the end sent no further event; its reader has finished it.
  for (const Stream& stream : file.tracker.streams()) {
    if (stream.session != access.session || stream.opened < file.size) continue;
    const Range rest{stream.position, file.size};
    note_pass(file, access.session, rest,
              file.pages.ready(access.session, rest) + file.pages.covered(rest, kFound));
    break;
  }
  lap.bytes = 0;
  ++lap.passes;
  session->passes = std::max(session->passes, lap.passes);
}

void StreamPlanner::note_step(PlannedFile& file, const Access& access,
                              const Tracker::Outcome& outcome, const std::vector<Range>& parts) {
  uint64_t passed = 0;
  for (const Range& part : parts) passed += part.length();
  const uint64_t window = kWindowBlocks * queue_.of(file).model.block();
  accounts_.savings(access.session)
      ->reads_on(access.reader, access.worker, access.time_ns,
                 {demand(file, access.session, passed).alone_ns,
                  demand(file, access.session, window).alone_ns, access.waited_ns});
  if (!outcome.begun) return;
  accounts_.count(access.session, SessionMetric::streams_begun, 1);
  note_begin(file, access);
}

// A thread reads in one place at a time: a stream that it began elsewhere and did not continue was
// a single access, and reading ahead there would only delay what it wants now.
void StreamPlanner::move_reader(uint64_t reader, FileId file, uint32_t stream) {
  if (last_stream_.size() > kMaxReaders) last_stream_.clear();
  auto& [last_file, last_stream] = last_stream_[reader];
  if (last_stream != 0 && (last_file != file || last_stream != stream)) {
    const auto other = files_.find(last_file);
    const Stream* left = other == files_.end() ? nullptr : other->second.tracker.find(last_stream);
    if (left != nullptr && !left->confirmed) {
      const auto plan = other->second.plans.find(last_stream);
      if (plan != other->second.plans.end()) plan->second.plan.pause();
    }
  }
  last_file = file;
  last_stream = stream;
}

void StreamPlanner::leave(FileId id, PlannedFile& file, uint32_t stream) {
  file.plans.erase(stream);
  std::erase_if(last_stream_, [&](const auto& entry) {
    return entry.second == std::pair<FileId, uint32_t>(id, stream);
  });
}

void StreamPlanner::on_access(FileId id, const Access& reported) {
  const auto at = files_.find(id);
  const Accounts::Session* session = accounts_.find(reported.session);
  if (at == files_.end() || session == nullptr) return;
  PlannedFile& file = at->second;
  Access access = reported;
  if (access.offset >= file.size) return;  // the file has grown: nothing is known of that part
  PlanOptions options = session->options;
  options.distance = accounts_.distance(access.session);
  if (access.page) {
    if (options.size == 0) options.size = kPageModeSize;
    access.length = std::max(access.length, options.distance);
  }
  access.length = std::min(access.length, file.size - access.offset);
  if (access.length == 0) return;
  const bool calls = access.kind == Access::Kind::kRead || access.kind == Access::Kind::kBegun;
  if (!calls) file.mapped = true;
  file.last_session = access.session;
  if (access.kind == Access::Kind::kSeen) {
    file.sweep.on_read({access.offset, access.offset + access.length});
  }
  StridePlanner::Match match;
  const bool was_read = access.kind == Access::Kind::kRead || access.kind == Access::Kind::kSeen;
  if (was_read) match = StridePlanner::on_read(file, access);
  std::vector<uint32_t> evicted;
  const Tracker::Outcome outcome =
      match.descent ? Tracker::Outcome{} : file.tracker.on_access(access, &evicted);
  for (const uint32_t stream : evicted) leave(id, file, stream);
  const std::vector<Range> parts = passed(file, access, outcome);
  note_step(file, access, outcome, parts);
  const bool known =
      StridePlanner::leads(file) ? match.expected : !outcome.begun && !outcome.merged;
  for (const Range& part : parts) {
    pass(file, part, access.session, known && file.usable && session->prefetch, access.time_ns);
  }
  if (outcome.stream == nullptr) return;
  const Stream& stream = *outcome.stream;
  Planned& planned = file.plans.try_emplace(stream.id, options).first->second;
  planned.plan.on_reader(stream, input(file, stream));
  move_reader(access.reader, id, stream.id);
  sequels_.on_step(id, file, stream);
}

// What readers have moved over with this access: all up to the stream's new position; where they
// are read ahead of one by one, only what was read now and not before, or was read ahead again.
std::vector<Range> StreamPlanner::passed(PlannedFile& file, const Access& access,
                                         const Tracker::Outcome& outcome) {
  const Stream* stream = outcome.stream;
  if (access.kind == Access::Kind::kRead || access.kind == Access::Kind::kSeen) {
    const Range range{access.offset, access.offset + access.length};
    IntervalSet fresh;
    for (const Range& part : file.coverage.add(range)) fresh.add(part);
    if (stream != nullptr && stream->confirmed) {
      const uint64_t jumped = access.offset - std::min(access.offset, outcome.before);
      file.coverage.judge({stream->begin, stream->position}, jumped,
                          queue_.of(file).model.cost().worth());
    }
    if (StridePlanner::leads(file)) {
      for (const Range& part : file.pages.pieces(range, kReady)) fresh.add(part);
      return fresh.pieces();
    }
  }
  if (stream == nullptr || stream->position <= outcome.before) return {};
  return {{outcome.before, stream->position}};
}

void StreamPlanner::on_random(FileId id) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  std::vector<uint32_t> evicted;
  at->second.tracker.on_random(&evicted);
  for (const uint32_t stream : evicted) leave(id, at->second, stream);
}

void StreamPlanner::on_advised(FileId id, SessionId session, bool by_page) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  if (by_page) {
    at->second.by_page.insert(session);
  } else {
    at->second.by_page.erase(session);
  }
}

void StreamPlanner::on_tensors(FileId id, TensorList tensors) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  at->second.tensors = std::move(tensors);
  StridePlanner::on_tensors(at->second);
}

void StreamPlanner::on_unmapped(FileId id, Range range) {
  const auto at = files_.find(id);
  if (at != files_.end()) at->second.pages.on(PageEvent::kUnmapped, range);
}

void StreamPlanner::remove_process(uint32_t pid) {
  for (auto& [id, file] : files_) {
    file.tracker.remove_process(pid);
    std::erase_if(file.readers, [pid](const auto& entry) { return entry.first >> 32 == pid; });
    StridePlanner::note_readers(file);
    if (file.readers.empty()) file.coverage = {};  // what they read may be evicted before the next
  }
  std::erase_if(last_stream_, [pid](const auto& entry) { return entry.first >> 32 == pid; });
}

void StreamPlanner::remove_file(FileId file) {
  std::erase_if(last_stream_, [file](const auto& entry) { return entry.second.first == file; });
}

void StreamPlanner::settle(PlannedFile& file, SessionId session, uint64_t now_ns) {
  for (const Stream& stream : file.tracker.streams()) {
    if (stream.session != session || !stream.confirmed) continue;
    const double seconds = static_cast<double>(now_ns - std::min(now_ns, stream.last_ns)) / 1e9;
    const auto run = static_cast<uint64_t>(std::min(stream.rate * seconds, 1e15));
    const uint64_t end = std::min(stream.opened, stream.position + run);
    if (end > stream.position) pass(file, {stream.position, end}, stream.session, false, now_ns);
  }
  file.laps.erase(session);
}

std::vector<StreamPlanner::Candidate> StreamPlanner::candidates(uint64_t mount) {
  std::vector<Candidate> out;
  for (auto& [id, file] : files_) {
    if (file.mount != mount || !file.usable) continue;
    for (const Stream& stream : file.tracker.streams()) {
      const auto planned = file.plans.find(stream.id);
      if (planned == file.plans.end() || !accounts_.prefetches(stream.session)) continue;
      const StreamPlan& plan = planned->second.plan;
      if (StridePlanner::leads(file) && stream.exact && !plan.fixed()) continue;
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
std::optional<Range> StreamPlanner::next_range(FileId id, PlannedFile& file, const Stream& stream,
                                               Planned& planned) {
  StreamPlan& plan = planned.plan;
  const Mount& mount = queue_.of(file);
  uint64_t block = mount.model.block();
  // Far ahead of the reader no thread waits for a single block: fewer, larger reads cost less.
  const uint64_t pipe = block * mount.in_flight;
  const bool large = plan.frontier() > stream.opened + kLargeReads * pipe && block < kLargeRead;
  if (large) block = kLargeRead;
  uint64_t skipped = 0;
  const auto skip = [&](uint64_t to) {
    const Range cached{plan.frontier(), to};
    accounts_.count(stream.session, SessionMetric::already_cached_bytes,
                    file.pages.on(PageEvent::kFoundCached, cached).bytes);
    skipped += cached.length();
    plan.advance(to);
    plan.on_filled(stream, cached.length(), input(file, stream));
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
    const uint64_t gap = file.pages.ready_until(stream.session, at);
    if (gap > at) {  // prefetched for another stream
      plan.advance(std::min(gap, plan.target()));
      continue;
    }
    Range piece{at, std::min({(at / block + 1) * block, plan.target(), file.size})};
    const std::vector<Range> reading = file.pages.pieces(piece, kReading);
    if (!reading.empty() && reading.front().begin <= at) {  // for another stream, or a sweep
      plan.advance(reading.front().end);
      continue;
    }
    if (large && !plan.fixed() && piece.end % block != 0 && piece.end != file.size) {
      return std::nullopt;  // the reader's next steps will complete the block
    }
    if (!reading.empty()) piece.end = reading.front().begin;
    const uint64_t cached =
        cached_at(residency_, id, piece, std::min(plan.target(), file.size), &planned.probed_until);
    if (cached == 0) return piece;
    skip(at + cached);
  }
  return std::nullopt;
}

void StreamPlanner::plan(uint64_t now_ns, std::vector<PlannedRead>* reads) {
  for (auto& [mount_id, mount] : queue_.mounts()) {
    if (mount.idle(now_ns) == 0) continue;
    heads_.plan(mount_id, now_ns, reads);
    for (const Candidate& candidate : candidates(mount_id)) {
      PlannedFile& file = files_.at(candidate.file);
      const Stream* stream = file.tracker.find(candidate.stream);
      Planned& planned = file.plans.at(candidate.stream);
      while (mount.idle(now_ns) != 0) {
        const auto range = next_range(candidate.file, file, *stream, planned);
        if (!range) break;
        if (!accounts_.room(stream->session, range->length())) {
          accounts_.set_starved(true);
          break;
        }
        queue_.start({candidate.file, stream->session, candidate.stream, *range}, now_ns, reads);
        planned.plan.advance(range->end);
        planned.trusted_until = range->end + kSampled * range->length();
        planned.in_flight += range->length();
      }
    }
    strides_.plan(mount_id, now_ns, reads);
    sequels_.plan(mount_id, now_ns, reads);
    sweep(mount_id, now_ns, reads);
  }
}

void StreamPlanner::on_ended(PlannedFile& file, const Request& request) {
  const auto planned = file.plans.find(request.stream);
  if (planned != file.plans.end()) planned->second.in_flight -= request.range.length();
}

void StreamPlanner::on_filled(PlannedFile& file, const Request& request, uint64_t bytes) {
  const Stream* stream = file.tracker.find(request.stream);
  const auto planned = file.plans.find(request.stream);
  if (stream == nullptr || planned == file.plans.end()) return;
  planned->second.plan.on_filled(*stream, bytes, input(file, *stream));
}

void StreamPlanner::on_arrived(PlannedFile& file, const Request& request, Range got) {
  const Stream* stream = file.tracker.find(request.stream);
  if (request.stream >= kSequelStream) {
    IntervalSet coming;
    for (const Range& piece : file.coverage.not_read(got)) coming.add(piece);
    for (const Stream& one : file.tracker.streams()) {
      if (!one.exact) coming.remove({one.begin, one.position});
    }
    for (const Range& piece : coming.pieces()) {
      accounts_.charge(request.session,
                       file.pages.on(PageEvent::kPrefetched, piece, request.session).bytes);
    }
    return;
  }
  const uint64_t passed =
      stream == nullptr ? got.begin : std::clamp(stream->position, got.begin, got.end);
  if (accounts_.exceeds(file.size, request.session)) {
    file.pages.on(PageEvent::kFallenBehind, {got.begin, passed});
  }
  accounts_.charge(request.session,
                   file.pages.on(PageEvent::kPrefetched, {passed, got.end}, request.session).bytes);
  on_filled(file, request, got.length());
}

}  // namespace sluice::policy
