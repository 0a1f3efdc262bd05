#include "policy/samples/job_orders.h"

#include <algorithm>
#include <utility>

#include "policy/util/in_turns.h"

namespace sluice::policy {
namespace {

constexpr unsigned kMaxChecked = 1 << 16;  // positions examined in one call
constexpr unsigned kMaxParents = 8;        // from a worker up to the session with the order
// An order is searched again when so many more samples are known, or this fraction of the order.
constexpr uint64_t kWorthwhile = 16, kWorthwhileShare = 64;
// An epoch seems to be left when so many epochs of its session's other orders have begun since it
// was read, two since a job may validate within it, or more if it has not been begun, and so many
// samples were read since: several batches of all workers, since a job may read two datasets by
// turns. It is read if it was so many times, which late events are not.
constexpr unsigned kPasses = 2, kPassesUnread = 3;
constexpr uint64_t kLeftBehind = 256, kLeftBehindSpread = 4, kReturns = 64;
constexpr size_t kLeftShare = 8;  // of a prediction, at most, for what may never be read
// What has a copy counts for this part of its bytes as ahead: where most have, the few that have
// none are wanted soon enough to keep the storage busy; and yet not a whole epoch at once.
constexpr uint32_t kHereShare = 4;

}  // namespace

bool JobOrders::publish(SessionId session, DatasetId dataset, uint32_t epoch, uint64_t first,
                        std::span<const uint32_t> indices, bool tentative) {
  const uint64_t bytes = indices.size() * SampleOrder::kPositionBytes;
  const bool fits = memory_.held + (tentative ? 2 : 1) * bytes <= memory_.most;
  if (tentative && (!fits || !jobs_.contains({session, dataset}))) return true;
  if (!fits) return false;
  Job& job = jobs_[{session, dataset}];
  memory_.more_holders |= job.held == 0;
  job.order.publish(epoch, first, indices, tentative);
  if (!tentative) {
    ++changes_;
    job.pending.clear();
  }
  memory_.held -= std::exchange(job.held, job.order.held());
  memory_.held += job.held;
  return true;
}

void JobOrders::erase(const std::function<bool(const Key&)>& which) {
  ++changes_;
  std::erase_if(jobs_, [&](const auto& entry) {
    if (!which(entry.first)) return false;
    memory_.held -= entry.second.held;
    return true;
  });
}

void JobOrders::remove(SessionId session, DatasetId dataset) {
  erase([&](const Key& key) { return key == Key(session, dataset); });
}

void JobOrders::remove_dataset(DatasetId dataset) {
  erase([dataset](const Key& key) { return key.second == dataset; });
}

void JobOrders::leave(SessionId session) {
  erase([session](const Key& key) { return key.first == session; });
  takes_.erase(session);
  std::erase_if(parents_, [&](const auto& entry) {
    return entry.first == session || entry.second == session;
  });
}

void JobOrders::set_parent(SessionId session, SessionId parent) {
  if (session != parent) parents_[session] = parent;
}

SessionId JobOrders::origin(SessionId session) const {
  for (unsigned up = 0; up < kMaxParents; ++up) {
    const auto parent = parents_.find(session);
    if (parent == parents_.end()) break;
    session = parent->second;
  }
  return session;
}

// A session without an order of its own reads that of its nearest ancestor; without a known
// ancestor, the only order that exists.
JobOrders::Jobs::const_iterator JobOrders::job_of(SessionId session, DatasetId dataset) const {
  SessionId owner = session;
  for (unsigned up = 0; up < kMaxParents; ++up) {
    const auto own = jobs_.find({owner, dataset});
    if (own != jobs_.end()) return own;
    const auto parent = parents_.find(owner);
    if (parent == parents_.end()) break;
    owner = parent->second;
  }
  auto only = jobs_.end();
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    if (at->first.second != dataset) continue;
    if (only != jobs_.end()) return jobs_.end();
    only = at;
  }
  return only;
}

std::optional<JobOrders::Running> JobOrders::running(SessionId session, DatasetId dataset) const {
  const auto at = job_of(session, dataset);
  if (at == jobs_.end()) return std::nullopt;
  return Running{at->first.first, at->second.order.epoch()};
}

bool JobOrders::is_random(SessionId session, DatasetId dataset) const {
  const auto at = job_of(session, dataset);
  return at != jobs_.end() && !at->second.order.sequential();
}

void JobOrders::take(SessionId session, DatasetId dataset, uint64_t index, uint64_t reader,
                     bool at_once) {
  const auto at = job_of(session, dataset);
  if (at == jobs_.end()) return;
  Job& job = jobs_.at(at->first);
  job.passed_at = ++takes_[at->first.first];
  ++job.returned;
  job.order.take(static_cast<uint32_t>(index), reader, at_once);
}

// An epoch of the order began.
void JobOrders::pass_by(const Key& begun) {
  const SessionId session = begun.first;
  for (auto at = jobs_.lower_bound({session, DatasetId{}});
       at != jobs_.end() && at->first.first == session; ++at) {
    Job& job = at->second;
    const bool read = at->first == begun || job.returned >= kReturns;
    job.passes = at->first == begun ? 0 : read ? 1 : job.passes + 1;
    job.passed_at = takes_[session];
    job.returned = 0;
  }
}

bool JobOrders::is_left(const Key& key, const Job& job, uint64_t spread) const {
  const SampleOrder& order = job.order;
  const unsigned passes = order.taken() == 0 ? kPassesUnread : kPasses;
  if (!job.of_files || order.taken() == order.size() || job.passes < passes) return false;
  const auto takes = takes_.find(key.first);
  return takes != takes_.end() &&
         takes->second - job.passed_at >= std::max(kLeftBehind, kLeftBehindSpread * spread);
}

bool JobOrders::begin_epochs() {
  bool began = false;
  for (auto& [key, job] : jobs_) {
    if (job.order.taken() == job.order.size()) job.order.peek();
    const uint64_t running = uint64_t{job.order.epoch()} + 1;
    if (std::exchange(job.running, running) == running) continue;
    began = true;
    pass_by(key);
  }
  SessionId session{};
  uint64_t spread = 0;  // the most of the session's
  for (auto& [key, job] : jobs_) {
    if (key.first != session) {
      session = key.first;
      spread = 0;
      for (auto at = jobs_.find(key); at != jobs_.end() && at->first.first == session; ++at)
        spread = std::max(spread, at->second.order.spread());
    }
    const bool left = is_left(key, job, spread);
    if (std::exchange(job.left, left) == left) continue;
    began = true;
    if (left) continue;
    job.pending.clear();
    job.order.restart();  // what it had may be gone
  }
  return began;
}

std::optional<WantedExtent> JobOrders::next(const Window& window, const Judge& judge,
                                            const Window& file_window) {
  auto at = jobs_.upper_bound(last_turn_);
  for (size_t tried = 0; tried < jobs_.size(); ++tried, ++at) {
    if (at == jobs_.end()) at = jobs_.begin();
    const auto wanted = next_of(at->first, at->second, window, judge, file_window);
    if (!wanted) continue;
    last_turn_ = at->first;
    return wanted;
  }
  return std::nullopt;
}

std::optional<WantedExtent> JobOrders::next_of(const Key& key, Job& job, const Window& window,
                                               const Judge& judge, const Window& file_window) {
  const Datasets::Dataset* dataset = datasets_.find(key.second);
  if (dataset == nullptr || job.left) return std::nullopt;
  const bool trial = dataset->trial[0] || dataset->trial[1];
  if (std::exchange(job.trial, trial) && !trial) job.order.rewind();  // the control group, too
  // What is to be read of one range after another is joined, and a log is read whole.
  job.order.set_sequence(job.order.sequential() || (in_sequence && in_sequence(key.second)));
  // Its reader was faster, and has read the original.
  const WantedExtent& last = job.last;
  if (!job.order.is_ahead(last.epoch, last.position, last.sample)) job.pending.clear();
  for (unsigned checked = 0; checked < kMaxChecked; ++checked) {
    while (!job.pending.empty()) {
      const Extent extent = job.pending.back();
      const FetchVerdict verdict = judge(key.first, extent);
      if (verdict == FetchVerdict::kLater) return std::nullopt;
      job.pending.pop_back();
      if (verdict == FetchVerdict::kTooLarge) job.order.lighten(extent.length);
      if (verdict == FetchVerdict::kHere) {
        const auto bytes =
            static_cast<uint32_t>(std::min<uint64_t>(files_.charge({&extent, 1}), UINT32_MAX));
        job.order.lighten(bytes - bytes / kHereShare);
      }
      job.last.extent = extent;
      if (verdict == FetchVerdict::kTake) return job.last;
    }
    const bool files = job.whole_files && file_window != nullptr;
    const uint64_t spread = job.order.spread();
    const SampleOrder::Beyond beyond = job.order.beyond();
    Ahead ahead{key.first, key.second, spread, spread * job.files, 0};
    if (beyond.by_worker) {
      ahead.beyond = beyond.samples * job.files;
      ahead.head_start = beyond.begins ? spread * job.files : 0;
    }
    const uint64_t most = files ? file_window(ahead) : window(ahead);
    if (job.order.ahead_bytes() >= most) return std::nullopt;
    if (const auto index = job.order.peek()) {
      if (!hand_out(key, job, *dataset, *index)) return std::nullopt;
      continue;
    }
    const uint64_t more = std::max(kWorthwhile, job.order.size() / kWorthwhileShare);
    if (dataset->set.known() < job.known + more) return std::nullopt;
    job.known = dataset->set.known();
    job.order.rewind();
  }
  return std::nullopt;
}

void JobOrders::restart(DatasetId dataset) {
  for (auto& [key, job] : jobs_) {
    if (key.second != dataset) continue;
    job.pending.clear();
    job.order.restart();
  }
}

// False: prefetching is off for such samples.
bool JobOrders::hand_out(const Key& key, Job& job, const Datasets::Dataset& dataset,
                         uint32_t index) const {
  const auto parts = dataset.set.parts(index);
  job.whole_files = is_of_files(parts);
  job.of_files |= job.whole_files;
  if (job.whole_files) job.files = parts.size();
  const size_t kind = job.whole_files ? 1 : 0;
  if (!parts.empty() && dataset.off[kind]) return false;
  job.last = {{},    key.first,          key.second,      job.order.epoch(),
              index, job.order.cursor(), job.order.size()};
  if (!parts.empty() && dataset.trial[kind] && is_control(index)) {
    job.order.hand_out(0);
    return true;
  }
  job.order.hand_out(static_cast<uint32_t>(std::min<uint64_t>(files_.charge(parts), UINT32_MAX)));
  job.pending.assign(parts.rbegin(), parts.rend());
  return true;
}

bool JobOrders::is_ahead(const WantedExtent& wanted) const {
  const auto at = jobs_.find({wanted.session, wanted.dataset});
  return at != jobs_.end() &&
         at->second.order.is_ahead(wanted.epoch, wanted.position, wanted.sample);
}

uint64_t JobOrders::beyond(DatasetId dataset) const {
  uint64_t sum = 0, most = 0;
  for (const auto& [key, job] : jobs_) {
    const bool reads = job.order.unfinished() && !job.left;
    if (!job.of_files || (key.second != dataset && !reads)) continue;
    const SampleOrder::Beyond beyond = job.order.beyond();
    sum += beyond.by_worker ? beyond.samples * job.files : 0;
    if (!beyond.by_worker) most = std::max(most, beyond.samples * job.files);
  }
  return sum + most;
}

void JobOrders::for_each_ahead(const Visit& visit, bool of_left) const {
  for (const auto& [key, job] : jobs_) {
    const Datasets::Dataset* dataset = datasets_.find(key.second);
    if (dataset == nullptr || (job.left && !of_left)) continue;
    const Job& one = job;
    const bool pending = !one.pending.empty() &&
                         one.order.is_ahead(one.last.epoch, one.last.position, one.last.sample);
    one.order.for_each_ahead([&](uint32_t index, uint64_t position) {
      const auto parts = dataset->set.parts(index);
      const size_t left = pending && position == one.last.position ? one.pending.size() : 0;
      for (size_t at = 0; at < parts.size(); ++at) visit(parts[at], at + left < parts.size());
    });
  }
}

bool JobOrders::is_shuffled(DatasetId dataset) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [dataset](const auto& entry) {
    const SampleOrder& order = entry.second.order;
    return entry.first.second == dataset && !order.sequential() && order.taken() < order.size();
  });
}

bool JobOrders::lacks_locations(SessionId session) const {
  return std::any_of(jobs_.begin(), jobs_.end(), [this, session](const auto& entry) {
    const DatasetId dataset = entry.first.second;
    if (!datasets_.uses(session, dataset) || entry.second.order.sequential()) return false;
    const SampleSet& set = datasets_.find(dataset)->set;
    return set.known() < set.samples() - set.samples() / 20;
  });
}

// Those with samples left in their running epochs, among which what is predicted is divided.
std::vector<const JobOrders::Jobs::value_type*> JobOrders::unfinished(const Which& which) const {
  std::vector<const Jobs::value_type*> found;
  for (const auto& entry : jobs_) {
    const SampleOrder& order = entry.second.order;
    if (order.taken() < order.size() && which(entry.first, entry.second)) found.push_back(&entry);
  }
  return found;
}

std::vector<uint32_t> JobOrders::upcoming(DatasetId dataset, size_t most) const {
  const auto jobs =
      unfinished([dataset](const Key& key, const Job&) { return key.second == dataset; });
  const size_t share = most / std::max<size_t>(jobs.size(), 1);
  std::vector<std::vector<uint32_t>> each;
  for (const auto* entry : jobs) {
    std::vector<uint32_t>& samples = each.emplace_back();
    entry->second.order.for_each_left([&](uint32_t index) {
      if (samples.size() < share) samples.push_back(index);
      return samples.size() < share;
    });
  }
  return in_turns(std::move(each));
}

std::vector<SampleFileId> JobOrders::files(bool left, size_t most) const {
  const auto jobs = unfinished([left](const Key&, const Job& job) { return job.left == left; });
  const size_t share = most / std::max<size_t>(jobs.size(), 1);
  std::vector<std::vector<SampleFileId>> each;
  for (const auto* entry : jobs) {
    const Datasets::Dataset* dataset = datasets_.find(entry->first.second);
    if (dataset == nullptr) continue;
    std::vector<SampleFileId>& files = each.emplace_back();
    size_t seen = 0;
    entry->second.order.for_each_left([&](uint32_t index) {
      for (const Extent& part : dataset->set.parts(index)) {
        if (part.file.is_whole() && files.size() < share) files.push_back(part.file.whole());
      }
      return files.size() < share && ++seen < share;
    });
  }
  return in_turns(std::move(each));
}

std::vector<SampleFileId> JobOrders::upcoming_files(size_t most) const {
  std::vector<SampleFileId> all = files(false, most);
  const std::vector<SampleFileId> left =
      files(true, std::min(most / kLeftShare, most - std::min(most, all.size())));
  all.insert(all.end(), left.begin(), left.end());
  return all;
}

uint64_t JobOrders::taken(SessionId session) const {
  uint64_t taken = 0;
  for (const auto& [key, job] : jobs_) {
    if (key.first == session) taken += job.order.taken();
  }
  return taken;
}

std::vector<SampleFileId> JobOrders::next_files(SessionId session, size_t samples) const {
  std::vector<std::vector<SampleFileId>> each;
  for (const auto& [key, job] : jobs_) {
    const Datasets::Dataset* dataset = datasets_.find(key.second);
    if (key.first != session || dataset == nullptr) continue;
    std::vector<SampleFileId>& files = each.emplace_back();
    for (const uint32_t index : job.order.next(samples)) {
      for (const Extent& part : dataset->set.parts(index)) {
        if (part.file.is_whole()) files.push_back(part.file.whole());
      }
    }
  }
  return in_turns(std::move(each));
}

}  // namespace sluice::policy
