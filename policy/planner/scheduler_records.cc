// The part of the scheduler that bounds what records of large files leave in the page cache. Only
// for jobs with a budget of their own whose data does not fit it: for all others, nothing is
// dropped that the kernel would have retained at no cost.
//
// A sample that was read is held for a while, since a batch is assembled after its last sample has
// ended, from views as well as from copies. Then it is spent: its pages are dropped, except those
// of a retained sample or of one still to come. Pages that a process maps are retried.
#include <algorithm>
#include <string>

#include "policy/planner/scheduler.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kMinWindow = 1 << 20;      // bytes
constexpr uint64_t kDepths = 3;               // as in stage_plan.cc
constexpr uint64_t kFades = 1024;             // samples until an unused window is a third
constexpr uint32_t kGathered = 2048;          // reads after which gathering counts as permanent
constexpr uint64_t kGatherShare = 4;          // divisor of the limit: records that wait
constexpr uint64_t kHeldShare = 4;            // divisor of the limit: the most that is held
constexpr uint64_t kNearEnough = 16;          // divisor of a capacity: ignores smaller changes
constexpr uint64_t kEntryBytes = 64;          // per sample, of the policy and the lists
constexpr uint64_t kIdleNs = 1'000'000'000;   // streams that are idle for longer do not count
constexpr uint64_t kSpentNs = 20'000'000;     // between two rounds of dropping records
constexpr uint64_t kVisitNs = 20'000;         // added to that for each sample ahead visited
constexpr uint64_t kMostDropping = 64 << 20;  // bytes being dropped
constexpr uint64_t kStuckNs = 250'000'000;    // until mapped pages are retried; doubles each time
constexpr unsigned kStuckTries = 5;
constexpr size_t kMostStuck = 4096;

}  // namespace

// The limit of the dataset's bytes in memory; 0: none, as many as the kernel retains. Datasets of
// one job share its budget in proportion to their sizes; files that several have count once.
uint64_t Scheduler::find_record_limit(uint32_t dataset) const {
  std::set<uint32_t> sessions = samples_->sessions_of(dataset);
  for (const uint32_t file : record_sets_.at(dataset).files) {
    const std::set<uint32_t>& users = files_.at(file).users;
    sessions.insert(users.begin(), users.end());
  }
  uint64_t limit = 0;
  for (const uint32_t id : sessions) {
    const auto session = sessions_.find(id);
    if (session == sessions_.end()) continue;
    if (session->second.memory == 0 || !session->second.prefetch) return 0;
    std::set<uint32_t> own, all;
    for (const auto& [other, set] : record_sets_) {
      if (other == dataset) own.insert(set.files.begin(), set.files.end());
      if (samples_->uses(id, other)) all.insert(set.files.begin(), set.files.end());
    }
    const auto size = [this](const std::set<uint32_t>& files) {
      uint64_t sum = 0;
      for (const uint32_t file : files) sum += files_.at(file).size;
      return sum;
    };
    const uint64_t memory = std::min(session->second.memory, record_most_);
    const uint64_t whole = size(all), part = size(own);
    if (whole <= memory) return 0;
    const double share = static_cast<double>(part) / static_cast<double>(std::max(whole, part));
    limit = std::max(limit, static_cast<uint64_t>(share * static_cast<double>(memory)));
  }
  return limit;
}

// Looked up for each sample, so the result is cached: its inputs change seldom.
uint64_t Scheduler::record_limit(uint32_t dataset) {
  const auto at = record_sets_.find(dataset);
  if (samples_ == nullptr || at == record_sets_.end()) return 0;
  RecordSet& set = at->second;
  if (set.seen_change != record_changes_) {
    set.seen_change = record_changes_;
    set.limit = find_record_limit(dataset);
  }
  return set.limit;
}

void Scheduler::set_record_most(uint64_t bytes) {
  if (bytes == record_most_) return;
  record_most_ = bytes;
  ++record_changes_;
}

void Scheduler::use_file(uint32_t file, uint32_t session) {
  const auto at = files_.find(file);
  if (at != files_.end() && at->second.users.insert(session).second) ++record_changes_;
}

bool Scheduler::is_shuffled(uint32_t file, uint32_t session) const {
  return std::any_of(record_sets_.begin(), record_sets_.end(), [&](const auto& entry) {
    return entry.second.files.count(file) != 0 && samples_->uses(session, entry.first) &&
           samples_->is_shuffled(entry.first);
  });
}

bool Scheduler::bounds_records(uint32_t session) const {
  const std::vector<uint32_t> tracked = records_.tracked();
  return std::any_of(tracked.begin(), tracked.end(),
                     [&](uint32_t dataset) { return samples_->uses(session, dataset); });
}

// Prefetched data takes memory from retained data: no more is read ahead than keeps the storage
// busy while workers read in parallel.
uint64_t Scheduler::record_window(uint32_t dataset, uint64_t spread, uint64_t limit,
                                  uint64_t now_ns) {
  const uint64_t mean = records_.mean_bytes(dataset);
  RecordSet& set = record_sets_.at(dataset);
  unsigned depth = 1;
  uint64_t gap = 0, size = 0;
  for (const uint32_t file : set.files) {
    const uint64_t mount = files_.at(file).mount;
    depth = std::max(depth, mounts_.at(mount).model.depth(now_ns));
    gap = std::max(gap, gather_gap(mount, mean));
    size += files_.at(file).size;
  }
  set.window -= set.window / kFades;
  set.window = std::max({set.window, kMinWindow, (kDepths * depth + spread) * mean});
  // More if that lets every second record meet a neighbour, where reading both at once saves.
  const uint64_t gathers = std::min(limit / kGatherShare, link_window_);
  set.gathers = gap != 0 && static_cast<double>(gap) * static_cast<double>(gathers) * 4 >=
                                static_cast<double>(mean) * static_cast<double>(size);
  if (set.gathers) set.window = std::max(set.window, gathers);
  set.window = std::min(set.window, limit / 2);
  set.hold -= set.hold / kFades;
  set.hold = std::min(std::max(set.hold, spread * mean * 3 / 2), limit / kHeldShare);
  return set.window;
}

std::optional<PolicyKind> Scheduler::record_policy(uint32_t dataset) const {
  for (const uint32_t id : samples_->sessions_of(dataset)) {
    const auto session = sessions_.find(id);
    if (session != sessions_.end() && session->second.policy) return session->second.policy;
  }
  return std::nullopt;
}

// Unless a job asked for a policy, records that are read together with their neighbours are
// retained by file order (policy/replacement/file_order.h).
void Scheduler::choose_record_policy(uint32_t dataset, std::vector<FilePages>* freed) {
  RecordSet& set = record_sets_.at(dataset);
  set.gathered = set.gathers ? std::min(set.gathered + 1, 2 * kGathered)
                             : set.gathered - std::min(set.gathered, 1U);
  const std::optional<PolicyKind> asked = record_policy(dataset);
  const std::optional<PolicyKind> now = records_.policy(dataset);
  const bool together =
      now == PolicyKind::kFileOrder ? set.gathered != 0 : set.gathered >= kGathered;
  const PolicyKind wanted = asked ? *asked : together ? PolicyKind::kFileOrder : PolicyKind::kAuto;
  if (wanted == now) return;
  records_.change_policy(dataset, wanted, samples_->set(dataset)->reach(), freed);
  if (wanted != PolicyKind::kFileOrder) predict_records(dataset);
}

void Scheduler::on_record_read(uint32_t session, uint32_t dataset, uint64_t index,
                               std::span<const Extent> parts, uint64_t now_ns) {
  if (samples_ == nullptr || samples_->set(dataset) == nullptr || index >= kNoSample) return;
  std::vector<FilePages> pages;
  for (const Extent& part : parts) {
    const auto at = files_.find(part.file);
    if (is_whole(part) || at == files_.end()) continue;
    if (record_sets_[dataset].files.insert(part.file).second) ++record_changes_;
    const Range range = pages_of(part, at->second.size);
    if (range.length() != 0) pages.push_back({part.file, range});
  }
  if (pages.empty()) return;
  uint64_t limit = record_limit(dataset);
  // Planning must not take the memory that it saves: policies' tables grow with the highest index.
  const uint64_t reach = std::max(samples_->set(dataset)->reach(), index + 1);
  if (reach > limit / kEntryBytes) limit = 0;
  if (limit == 0) {
    if (records_.tracks(dataset)) give_up_records(dataset);
    return;
  }
  std::vector<FilePages> freed;
  const uint64_t window = record_window(dataset, 0, limit, now_ns);
  const RecordSet& set = record_sets_.at(dataset);
  const uint64_t capacity = limit - window - std::min(set.hold, limit - window);
  const uint64_t before = records_.capacity(dataset);
  if (!records_.tracks(dataset)) {
    records_.track(dataset, record_policy(dataset).value_or(PolicyKind::kAuto),
                   samples_->set(dataset)->reach(), capacity);
  } else if (std::max(before, capacity) - std::min(before, capacity) > capacity / kNearEnough) {
    records_.set_capacity(dataset, capacity, &freed);
  }
  choose_record_policy(dataset, &freed);
  records_.on_read(session, dataset, static_cast<SampleId>(index), std::move(pages), &freed);
  for (const FilePages& piece : freed) {
    held_bytes_ += piece.range.length();
    held_.push_back(piece);
  }
  uint64_t hold = 0;
  for (const auto& [id, other] : record_sets_) hold += other.hold;
  while (held_bytes_ > hold) {
    const FilePages piece = held_.front();
    held_.pop_front();
    held_bytes_ -= piece.range.length();
    const auto at = files_.find(piece.file);
    if (at == files_.end()) continue;
    at->second.spent.add(piece.range);
    any_spent_ = true;
  }
}

void Scheduler::predict_records() {
  for (const uint32_t dataset : records_.tracked()) predict_records(dataset);
}

// Samples whose indices are too high for a policy's tables are left out.
void Scheduler::predict_records(uint32_t dataset) {
  std::vector<uint32_t> order = samples_->upcoming(dataset);
  const uint64_t end = record_limit(dataset) / kEntryBytes;
  std::erase_if(order, [end](uint32_t sample) { return sample >= end; });
  records_.predict(dataset, order);
}

void Scheduler::forget_record_dataset(uint32_t dataset) {
  if (record_sets_.count(dataset) == 0) return;
  give_up_records(dataset);
  record_sets_.erase(dataset);
  ++record_changes_;
}

// The dataset's readers have no limit any more, or have ended: Sluice must not drop their pages.
void Scheduler::give_up_records(uint32_t dataset) {
  records_.forget(dataset);
  for (const uint32_t file : record_sets_.at(dataset).files) forget_spent(file);
}

void Scheduler::forget_spent(uint32_t file) {
  const auto at = files_.find(file);
  if (at != files_.end()) {
    at->second.spent.clear();
    at->second.between.clear();
  }
  std::erase_if(stuck_, [file](const Stuck& stuck) { return stuck.pages.file == file; });
  std::erase_if(held_, [&](const FilePages& pages) {
    if (pages.file == file) held_bytes_ -= pages.range.length();
    return pages.file == file;
  });
}

void Scheduler::forget_record_session(uint32_t session) {
  ++record_changes_;
  for (auto& [id, file] : files_) {
    file.users.erase(session);
    file.by_page.erase(session);
  }
  records_.forget_session(session);
  for (auto at = record_sets_.begin(); at != record_sets_.end();) {
    if (samples_ != nullptr && samples_->set(at->first) != nullptr) {
      ++at;
      continue;
    }
    give_up_records(at->first);
    at = record_sets_.erase(at);
  }
}

void Scheduler::forget_record_file(uint32_t file) {
  ++record_changes_;
  forget_spent(file);
  records_.forget_file(file);
  for (auto at = record_sets_.begin(); at != record_sets_.end();) {
    at->second.files.erase(file);
    if (!at->second.files.empty()) {
      ++at;
      continue;
    }
    records_.forget(at->first);
    at = record_sets_.erase(at);
  }
}

// Drops pages that no other sample needs, as far as is known without visiting all samples ahead:
// what those need waits, is in flight, or is in memory for a session.
void Scheduler::drop_between(uint32_t id, File& file, std::vector<PlannedDrop>* drops) {
  for (const Range& piece : file.between.pieces()) {
    std::vector<Range> unowned;
    records_.unowned(id, piece, &unowned);
    IntervalSet left;
    for (const Range& part : unowned) left.add(part);
    const auto spare = [&](const IntervalSet& needed) {
      for (const Range& part : needed.pieces_in(piece)) left.remove(part);
    };
    for (const IntervalSet* needed : {&file.flying, &file.waiting, &file.found}) spare(*needed);
    for (const auto& [session, ready] : file.ready) spare(ready);
    for (const Range& part : left.pieces()) {
      drops->push_back({id, part, PlannedDrop::kSpent});
      dropping_bytes_ += part.length();
      file.dropping.add(part);
    }
  }
  file.between.clear();
}

void Scheduler::drop_records(uint64_t now_ns, std::vector<PlannedDrop>* drops) {
  for (auto& [id, file] : files_) {
    if (!file.between.empty() && dropping_bytes_ < kMostDropping) drop_between(id, file, drops);
  }
  const bool spent = any_spent_ && now_ns >= next_spent_ns_ && dropping_bytes_ < kMostDropping;
  if (!spent && (stuck_.empty() || stuck_.front().next_ns > now_ns)) return;
  uint64_t visited = 0;
  std::map<uint32_t, IntervalSet> wanted = wanted_by_samples(&visited);
  next_spent_ns_ = now_ns + kSpentNs + visited * kVisitNs;
  while (!stuck_.empty() && stuck_.front().next_ns <= now_ns) {
    const Stuck stuck = stuck_.front();
    stuck_.pop_front();
    drop_unneeded({stuck.pages.file, stuck.pages.range, PlannedDrop::kSpent, stuck.tries + 1},
                  wanted[stuck.pages.file], now_ns, drops);
  }
  if (!spent) return;
  any_spent_ = false;
  for (auto& [id, file] : files_) {
    if (file.spent.empty()) continue;
    for (const Range& piece : file.spent.pieces()) {
      drop_unneeded({id, piece, PlannedDrop::kSpent}, wanted[id], now_ns, drops);
    }
    file.spent.clear();
  }
}

// Pages that a sample will read or is reading stay: they are spent anew when it was read.
void Scheduler::drop_unneeded(const PlannedDrop& drop, const IntervalSet& wanted, uint64_t now_ns,
                              std::vector<PlannedDrop>* drops) {
  const auto at = files_.find(drop.file);
  if (at == files_.end()) return;
  File& file = at->second;
  if (needed(file, drop.range, kIdleNs, now_ns)) return;
  std::vector<Range> unowned;
  records_.unowned(drop.file, drop.range, &unowned);
  for (const Range& part : unowned) {
    IntervalSet left;
    left.add(part);
    for (const Range& piece : wanted.pieces_in(part)) left.remove(piece);
    for (const Range& piece : file.flying.pieces_in(part)) left.remove(piece);
    for (const Range& piece : left.pieces()) {
      drops->push_back({drop.file, piece, drop.why, drop.tries});
      dropping_bytes_ += piece.length();
      file.dropping.add(piece);
    }
  }
}

void Scheduler::on_spent_dropped(const PlannedDrop& drop, uint64_t left, uint64_t now_ns) {
  dropping_bytes_ -= std::min(dropping_bytes_, drop.range.length());
  const auto at = files_.find(drop.file);
  if (at == files_.end()) return;
  at->second.dropping.remove(drop.range);
  // A process still maps them: it touched pages beside them, or has not finished its batch.
  if (left == 0 || drop.tries >= kStuckTries || stuck_.size() >= kMostStuck) return;
  const Stuck stuck{{drop.file, drop.range}, drop.tries, now_ns + (kStuckNs << drop.tries)};
  const auto later =
      std::upper_bound(stuck_.begin(), stuck_.end(), stuck,
                       [](const Stuck& a, const Stuck& b) { return a.next_ns < b.next_ns; });
  stuck_.insert(later, stuck);
}

}  // namespace sluice::optimizer
