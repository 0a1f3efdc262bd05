#include "policy/planner/scheduler.h"

#include <algorithm>

namespace sluice::optimizer {
namespace {

constexpr uint32_t kDefaultBlock = 128 << 10;
constexpr unsigned kDefaultDepth = 32;
constexpr uint64_t kMaxDistance = 8 << 20;
constexpr uint64_t kPageModeSize = 50 << 20;  // the published default if a trip opens a single page
constexpr uint64_t kMinDistance = 256 << 10;
constexpr uint64_t kWindowBlocks = 2;  // kernel read-ahead of a stream
constexpr size_t kMaxReaders = 4096;   // remembered, over all files

}  // namespace

void Scheduler::add_session(uint32_t session, const PlanOptions& options, bool prefetch,
                            uint64_t memory, std::optional<PolicyKind> policy) {
  Session& entry = sessions_[session];
  entry.policy = policy;
  ++record_changes_;
  entry.options = options;
  entry.prefetch = prefetch;
  entry.memory = memory;
}

void Scheduler::settle_session(uint32_t session, uint64_t now_ns) {
  for (auto& [id, file] : files_) {
    // An open cell sends no further event. At its pace the reader has come this far in it.
    for (const Stream& stream : file.tracker.streams()) {
      if (stream.session != session || !stream.confirmed) continue;
      const double seconds = static_cast<double>(now_ns - std::min(now_ns, stream.last_ns)) / 1e9;
      const auto run = static_cast<uint64_t>(std::min(stream.rate * seconds, 1e15));
      const uint64_t end = std::min(stream.opened, stream.position + run);
      if (end > stream.position) pass(file, {stream.position, end}, stream, false, now_ns);
    }
    release_ready(file, session, {0, UINT64_MAX}, SessionMetric::precached_unused_bytes);
    file.ready.erase(session);
    file.laps.erase(session);
  }
}

void Scheduler::remove_session(uint32_t session, uint64_t now_ns) {
  settle_session(session, now_ns);
  std::vector<WaitingRead> gone;
  for (auto& [id, mount] : mounts_) mount.waiting.remove_session(session, &gone);
  give_up_waiting(gone);
  sessions_.erase(session);
}

SessionMetrics* Scheduler::metrics(uint32_t session) {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : &at->second.metrics;
}

void Scheduler::count(uint32_t session, SessionMetric metric, uint64_t by) {
  if (SessionMetrics* all = metrics(session)) (*all)[static_cast<size_t>(metric)] += by;
}

Savings* Scheduler::savings(uint32_t session) {
  const auto at = sessions_.find(session);
  return at == sessions_.end() ? nullptr : &at->second.savings;
}

Demand Scheduler::run_demand(const File& file, uint32_t session, uint64_t bytes) const {
  const StorageModel& model = mounts_.at(file.mount).model;
  return file.by_page.contains(session) ? model.page_demand(bytes) : model.demand(bytes);
}

Demand Scheduler::record_demand(const File& file, uint32_t session, uint64_t bytes) const {
  const StorageModel& model = mounts_.at(file.mount).model;
  return file.by_page.contains(session) ? model.page_demand(bytes) : model.record_demand(bytes);
}

void Scheduler::served(uint32_t session, Demand demand) {
  if (Savings* all = savings(session)) all->served(demand);
}

void Scheduler::missed(uint32_t session, Demand demand) {
  if (Savings* all = savings(session)) all->missed(demand);
}

void Scheduler::add_mount(uint64_t mount, uint32_t block, unsigned max_depth) {
  mounts_.try_emplace(mount, block, max_depth);
}

void Scheduler::set_mount(uint64_t mount, uint32_t block, unsigned max_depth) {
  const auto at = mounts_.find(mount);
  const bool idle = at != mounts_.end() && at->second.in_flight == 0 && at->second.waiting.empty();
  if (idle) mounts_.erase(at);
  add_mount(mount, block, max_depth);
}

void Scheduler::resize_file(uint32_t file, uint64_t size) {
  const auto at = files_.find(file);
  if (at == files_.end()) return;
  at->second.size = size;
  ++record_changes_;
}

void Scheduler::add_file(uint32_t file, uint64_t size, uint64_t mount) {
  add_mount(mount, kDefaultBlock, kDefaultDepth);
  File& entry = files_[file];
  entry.size = size;
  entry.mount = mount;
}

void Scheduler::file_usable(uint32_t file, bool usable) {
  const auto at = files_.find(file);
  if (at == files_.end()) return;
  at->second.usable = usable;
  if (!usable) forget_waiting(file);
}

void Scheduler::remove_file(uint32_t file) {
  const auto at = files_.find(file);
  if (at == files_.end()) return;
  for (auto& [session, ready] : at->second.ready) {
    release_ready(at->second, session, {0, UINT64_MAX}, SessionMetric::precached_unused_bytes);
  }
  forget_waiting(file);
  // What is in flight still ends in on_done(), which finds its request without its file.
  files_.erase(at);
  forget_record_file(file);
  std::erase_if(last_stream_, [file](const auto& entry) { return entry.second.first == file; });
}

void Scheduler::release_ready(File& file, uint32_t session, Range range, SessionMetric why) {
  const auto ready = file.ready.find(session);
  if (ready == file.ready.end()) return;
  const uint64_t bytes = ready->second.remove(range);
  outstanding_ -= bytes;
  const auto owner = sessions_.find(session);
  if (owner != sessions_.end()) owner->second.outstanding -= bytes;
  count(session, why, bytes);
}

uint64_t Scheduler::session_budget(uint32_t session) const {
  const auto at = sessions_.find(session);
  if (at == sessions_.end() || at->second.memory == 0) return budget_;
  return std::min(budget_, at->second.memory);
}

bool Scheduler::room(uint32_t session, uint64_t bytes) const {
  const auto at = sessions_.find(session);
  if (at == sessions_.end()) return false;
  return outstanding_ + taken_bytes_ + bytes <= budget_ &&
         at->second.outstanding + at->second.taken + bytes <= session_budget(session);
}

uint64_t Scheduler::distance(uint32_t session) const {
  const auto at = sessions_.find(session);
  if (at != sessions_.end() && at->second.options.distance != 0) return at->second.options.distance;
  uint64_t distance = kMaxDistance;
  while (distance > kMinDistance && distance > session_budget(session) / 8) distance /= 2;
  return distance;
}

PlanInput Scheduler::input(const File& file, const Stream& stream) const {
  const Mount& mount = mounts_.at(file.mount);
  uint32_t confirmed = 0;
  for (const Stream& other : file.tracker.streams()) confirmed += other.confirmed ? 1 : 0;
  return {file.size, mount.model.block(), mount.model.bandwidth(), session_budget(stream.session),
          confirmed};
}

// The readers have moved over `range`: the prefetched part was of use, the rest came late.
void Scheduler::pass(File& file, Range range, const Stream& stream, bool expected,
                     uint64_t now_ns) {
  Mount& mount = mounts_.at(file.mount);
  uint64_t used = 0;
  for (auto& [session, ready] : file.ready) {
    std::vector<Range> pieces;
    const uint64_t bytes = ready.remove(range, &pieces);
    if (bytes == 0) continue;
    used += bytes;
    outstanding_ -= bytes;
    const auto owner = sessions_.find(session);
    if (owner != sessions_.end()) owner->second.outstanding -= bytes;
    count(session, SessionMetric::precached_used_bytes, bytes);
    if (!drops_behind(file.size, session)) continue;
    for (const Range& piece : pieces) file.behind.add(piece);
  }
  served(stream.session, run_demand(file, stream.session, used));
  const uint64_t found = file.found.remove(range);
  note_pass(file, stream.session, range, used + found);
  const uint64_t late = range.length() - std::min(range.length(), used + found);
  missed(stream.session, run_demand(file, stream.session, late));
  if (late == 0 || !expected) return;
  count(stream.session, SessionMetric::late_bytes, late);
  // Where a prefetch is in flight the reader waits for that, and sends storage no request.
  if (late > file.flying.covered(range)) mount.model.on_stall(now_ns);
}

void Scheduler::leave(uint32_t id, File& file, uint32_t stream) {
  file.plans.erase(stream);
  std::erase_if(last_stream_, [&](const auto& entry) {
    return entry.second == std::pair<uint32_t, uint32_t>(id, stream);
  });
}

void Scheduler::on_access(uint32_t id, const Access& asked) {
  const auto at = files_.find(id);
  const auto session = sessions_.find(asked.session);
  if (at == files_.end() || session == sessions_.end()) return;
  File& file = at->second;
  Access access = asked;
  if (access.offset >= file.size) return;  // the file has grown: nothing is known of that part
  PlanOptions options = session->second.options;
  options.distance = distance(access.session);
  if (access.page) {
    if (options.size == 0) options.size = kPageModeSize;
    access.length = std::max(access.length, options.distance);
  }
  access.length = std::min(access.length, file.size - access.offset);
  if (access.length == 0) return;
  if (access.kind != Access::Kind::kRead) file.mapped = true;
  file.last_session = access.session;
  std::vector<uint32_t> evicted;
  const Tracker::Outcome outcome = file.tracker.on_access(access, &evicted);
  for (const uint32_t stream : evicted) leave(id, file, stream);
  const uint64_t passed = outcome.stream != nullptr && outcome.stream->position > outcome.before
                              ? outcome.stream->position - outcome.before
                              : 0;
  const uint64_t window = kWindowBlocks * mounts_.at(file.mount).model.block();
  session->second.savings.reads_on(
      access.reader, access.worker, access.time_ns,
      {run_demand(file, access.session, passed).alone_ns,
       run_demand(file, access.session, window).alone_ns, access.waited_ns});
  if (outcome.begun) count(access.session, SessionMetric::streams_begun, 1);
  if (outcome.begun) note_begin(file, access);
  if (outcome.stream == nullptr) return;
  const Stream& stream = *outcome.stream;

  auto planned = file.plans.find(stream.id);
  if (planned == file.plans.end()) {
    planned = file.plans.try_emplace(stream.id, options).first;
  }
  if (stream.position > outcome.before) {
    const bool expected =
        !outcome.begun && !outcome.merged && file.usable && session->second.prefetch;
    pass(file, {outcome.before, stream.position}, stream, expected, access.time_ns);
  }
  planned->second.plan.on_reader(stream, input(file, stream));

  // A thread reads in one place at a time: a stream that it began elsewhere and did not continue
  // was a single access, and reading ahead there would only delay what it wants now.
  if (last_stream_.size() > kMaxReaders) last_stream_.clear();
  auto& [last_file, last_stream] = last_stream_[access.reader];
  if (last_stream != 0 && (last_file != id || last_stream != stream.id)) {
    const auto other = files_.find(last_file);
    const Stream* left = other == files_.end() ? nullptr : other->second.tracker.find(last_stream);
    if (left != nullptr && !left->confirmed) {
      const auto plan = other->second.plans.find(last_stream);
      if (plan != other->second.plans.end()) plan->second.plan.pause();
    }
  }
  last_file = id;
  last_stream = stream.id;
}

void Scheduler::on_random(uint32_t id) {
  const auto at = files_.find(id);
  if (at == files_.end()) return;
  std::vector<uint32_t> evicted;
  at->second.tracker.on_random(&evicted);
  for (const uint32_t stream : evicted) leave(id, at->second, stream);
}

void Scheduler::on_advised(uint32_t file, uint32_t session, bool by_page) {
  const auto at = files_.find(file);
  if (at == files_.end()) return;
  if (by_page) {
    at->second.by_page.insert(session);
  } else {
    at->second.by_page.erase(session);
  }
}

void Scheduler::on_zapped(uint32_t id, Range range) {
  const auto at = files_.find(id);
  if (at != files_.end()) at->second.zapped.add(range);
}

void Scheduler::forget_process(uint32_t pid) {
  for (auto& [id, file] : files_) file.tracker.forget_process(pid);
  std::erase_if(last_stream_, [pid](const auto& entry) { return entry.first >> 32 == pid; });
}

std::vector<uint64_t> Scheduler::hung(uint64_t now_ns, uint64_t limit_ns) const {
  std::vector<uint64_t> mounts;
  for (const auto& [token, request] : requests_) {
    if (now_ns - std::min(now_ns, request.sample.issued_ns) < limit_ns) continue;
    if (std::find(mounts.begin(), mounts.end(), request.mount) == mounts.end()) {
      mounts.push_back(request.mount);
    }
  }
  return mounts;
}

std::vector<uint64_t> Scheduler::tokens_of(uint32_t file) const {
  std::vector<uint64_t> tokens;
  for (const auto& [token, request] : requests_) {
    if (request.file == file) tokens.push_back(token);
  }
  return tokens;
}

std::vector<StreamView> Scheduler::streams() const {
  std::vector<StreamView> out;
  for (const auto& [id, file] : files_) {
    for (const Stream& stream : file.tracker.streams()) {
      const auto planned = file.plans.find(stream.id);
      StreamView view;
      view.file = id;
      view.session = stream.session;
      view.readers = static_cast<uint32_t>(stream.readers.size());
      view.position = stream.position;
      view.opened = stream.opened;
      view.rate = stream.rate;
      view.confirmed = stream.confirmed;
      if (planned != file.plans.end()) {
        view.frontier = planned->second.plan.frontier();
        view.target = planned->second.plan.target();
        view.in_flight = planned->second.in_flight;
      }
      out.push_back(view);
    }
  }
  return out;
}

const StorageModel* Scheduler::model(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? nullptr : &at->second.model;
}

unsigned Scheduler::mount_in_flight(uint64_t mount) const {
  const auto at = mounts_.find(mount);
  return at == mounts_.end() ? 0 : at->second.in_flight;
}

}  // namespace sluice::optimizer
