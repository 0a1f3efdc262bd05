#include "policy/planner/retention.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kMinWindow = 1 << 20;  // bytes
constexpr uint64_t kDepths = 3;           // as in copy_mounts.cc
constexpr uint64_t kFades = 1024;         // samples until an unused window is a third
constexpr uint32_t kGathered = 2048;      // reads after which gathering counts as permanent
constexpr uint64_t kGatherShare = 4;      // divisor of the limit: records that wait
constexpr uint64_t kHeldShare = 4;        // divisor of the limit: the most that is held
constexpr uint64_t kNearEnough = 16;      // divisor of a capacity: ignores smaller changes
constexpr uint64_t kEntryBytes = 64;      // per sample, of the policy and the lists

}  // namespace

uint64_t Retention::size_of(const std::set<FileId>& files) const {
  uint64_t sum = 0;
  for (const FileId file : files) sum += files_.at(file).size;
  return sum;
}

// The limit of the dataset's bytes in memory; 0: none, as many as the kernel retains. Datasets of
// one job share its budget in proportion to their sizes; files that several have count once.
uint64_t Retention::find_limit(DatasetId dataset) const {
  std::set<SessionId> sessions = samples_->datasets().sessions_of(dataset);
  for (const FileId file : datasets_.at(dataset).files) {
    const std::set<SessionId>& users = files_.at(file).users;
    sessions.insert(users.begin(), users.end());
  }
  uint64_t limit = 0;
  for (const SessionId id : sessions) {
    const Accounts::Session* session = accounts_.find(id);
    if (session == nullptr) continue;
    if (session->memory == 0 || !session->prefetch) return 0;
    std::set<FileId> own, all;
    for (const auto& [other, set] : datasets_) {
      if (other == dataset) own.insert(set.files.begin(), set.files.end());
      if (samples_->datasets().uses(id, other)) all.insert(set.files.begin(), set.files.end());
    }
    const uint64_t memory = std::min(session->memory, most_);
    const uint64_t whole = size_of(all), part = size_of(own);
    if (whole <= memory) return 0;
    const double share = static_cast<double>(part) / static_cast<double>(std::max(whole, part));
    limit = std::max(limit, static_cast<uint64_t>(share * static_cast<double>(memory)));
  }
  return limit;
}

// Looked up for each sample, so the result is cached: its inputs change seldom.
uint64_t Retention::limit(DatasetId dataset) {
  const auto at = datasets_.find(dataset);
  if (samples_ == nullptr || at == datasets_.end()) return 0;
  Dataset& set = at->second;
  if (set.seen_change != changes_) {
    set.seen_change = changes_;
    set.limit = find_limit(dataset);
  }
  return set.limit;
}

void Retention::set_most(uint64_t bytes) {
  if (bytes == most_) return;
  most_ = bytes;
  ++changes_;
}

void Retention::use_file(FileId file, SessionId session) {
  const auto at = files_.find(file);
  if (at != files_.end() && at->second.users.insert(session).second) ++changes_;
}

bool Retention::is_shuffled(FileId file, SessionId session) const {
  return std::any_of(datasets_.begin(), datasets_.end(), [&](const auto& entry) {
    return entry.second.files.count(file) != 0 && samples_->datasets().uses(session, entry.first) &&
           samples_->orders().is_shuffled(entry.first);
  });
}

bool Retention::bounds(SessionId session) const {
  const std::vector<DatasetId> tracked = records_.tracked();
  return std::any_of(tracked.begin(), tracked.end(), [&](DatasetId dataset) {
    return samples_->datasets().uses(session, dataset);
  });
}

bool Retention::is_bounded(FileId file) {
  return std::any_of(datasets_.begin(), datasets_.end(), [&](const auto& entry) {
    return entry.second.files.count(file) != 0 && limit(entry.first) != 0;
  });
}

uint64_t Retention::bytes_read_by(SessionId session, FileId file) {
  const uint64_t size = files_.at(file).size;
  if (accounts_.find(session) == nullptr || samples_ == nullptr) return size;
  ReadFiles& read = read_[session];
  if (read.seen_change != changes_) {
    read.seen_change = changes_;
    read.files.clear();
    for (const auto& [dataset, set] : datasets_) {
      if (samples_->datasets().uses(session, dataset))
        read.files.insert(set.files.begin(), set.files.end());
    }
    read.bytes = size_of(read.files);
  }
  return read.bytes + (read.files.count(file) != 0 ? 0 : size);
}

bool Retention::stays(FileId file, SessionId session) {
  return !accounts_.exceeds(bytes_read_by(session, file), session) && !is_bounded(file);
}

// No more is read ahead than keeps the storage busy while workers read in parallel.
void Retention::move_window(DatasetId dataset, uint64_t spread, uint64_t limit, uint64_t now_ns) {
  const uint64_t mean = records_.mean_bytes(dataset);
  Dataset& set = datasets_.at(dataset);
  unsigned depth = 1;
  uint64_t gap = 0;
  for (const FileId file : set.files) {
    const Mount& mount = queue_.of(files_.at(file));
    depth = std::max(depth, mount.model.depth(now_ns));
    gap = std::max(gap, mount.largest_gap(mean));
  }
  set.window -= set.window / kFades;
  set.window = std::max({set.window, kMinWindow, (kDepths * depth + spread) * mean});
  // More if that lets every second record meet a neighbour, where reading both at once saves.
  const uint64_t gathers = std::min(limit / kGatherShare, link_window_);
  set.gathers = gap != 0 && static_cast<double>(gap) * static_cast<double>(gathers) * 4 >=
                                static_cast<double>(mean) * static_cast<double>(size_of(set.files));
  if (set.gathers) set.window = std::max(set.window, gathers);
  set.window = std::min(set.window, limit / 2);
  set.hold -= set.hold / kFades;
  set.hold = std::min(std::max(set.hold, spread * mean * 3 / 2), limit / kHeldShare);
}

uint64_t Retention::window(DatasetId dataset, uint64_t spread, uint64_t most, uint64_t now_ns) {
  const uint64_t bytes = records_.tracks(dataset) ? limit(dataset) : 0;
  if (bytes == 0) return most;
  move_window(dataset, spread, bytes, now_ns);
  return std::min(most, datasets_.at(dataset).window);
}

std::optional<PolicyKind> Retention::requested_policy(DatasetId dataset) const {
  for (const SessionId id : samples_->datasets().sessions_of(dataset)) {
    const Accounts::Session* session = accounts_.find(id);
    if (session != nullptr && session->policy) return session->policy;
  }
  return std::nullopt;
}

// Unless a job requests a policy, records that are read together with their neighbours are
// retained by file order (policy/replacement/file_order.h).
void Retention::choose_policy(DatasetId dataset, std::vector<FilePages>* freed) {
  Dataset& set = datasets_.at(dataset);
  set.gathered = set.gathers ? std::min(set.gathered + 1, 2 * kGathered)
                             : set.gathered - std::min(set.gathered, 1U);
  const std::optional<PolicyKind> requested = requested_policy(dataset);
  const std::optional<PolicyKind> now = records_.policy(dataset);
  const bool together =
      now == PolicyKind::kFileOrder ? set.gathered != 0 : set.gathered >= kGathered;
  const PolicyKind wanted = requested  ? *requested
                            : together ? PolicyKind::kFileOrder
                                       : PolicyKind::kAuto;
  if (wanted == now) return;
  records_.change_policy(dataset, wanted, samples_->set(dataset)->reach(), freed);
  if (wanted != PolicyKind::kFileOrder) predict(dataset, 1);
}

// The record's pages; its files belong to the dataset from now on.
std::vector<FilePages> Retention::note_files(DatasetId dataset, std::span<const Extent> parts) {
  std::vector<FilePages> pages;
  for (const Extent& part : parts) {
    const auto at = files_.find(part.file.followed());
    if (at == files_.end()) continue;
    if (datasets_[dataset].files.insert(at->first).second) ++changes_;
    const Range range = pages_of(part, at->second.size);
    if (range.length() != 0) pages.push_back({at->first, range});
  }
  return pages;
}

// Bytes of records that were read together and wait for their turn (record_groups.h), which can be
// more than the window. Pages that they share count once: no more than is ready.
uint64_t Retention::waiting(DatasetId dataset) const {
  const uint64_t taken = samples_->groups().taken_bytes(dataset);
  if (taken == 0) return 0;
  uint64_t ready = 0;
  for (const FileId file : datasets_.at(dataset).files) {
    ready += files_.at(file).pages.total(kReady);
    if (ready >= taken) return taken;
  }
  return ready;
}

void Retention::set_capacity(DatasetId dataset, uint64_t capacity, std::vector<FilePages>* freed) {
  const uint64_t before = records_.capacity(dataset);
  if (!records_.tracks(dataset)) {
    records_.track(dataset, requested_policy(dataset).value_or(PolicyKind::kAuto),
                   samples_->set(dataset)->reach(), capacity);
  } else if (std::max(before, capacity) - std::min(before, capacity) > capacity / kNearEnough) {
    records_.set_capacity(dataset, capacity, freed);
  }
}

void Retention::on_read(SessionId session, DatasetId dataset, uint64_t index,
                        std::span<const Extent> parts, uint64_t now_ns) {
  if (samples_ == nullptr || samples_->set(dataset) == nullptr || index >= kNoSample) return;
  std::vector<FilePages> pages = note_files(dataset, parts);
  if (pages.empty()) return;
  uint64_t bytes = limit(dataset);
  // Planning must not take the memory that it saves: policies' tables grow with the highest index.
  const uint64_t reach = std::max(samples_->set(dataset)->reach(), index + 1);
  if (reach > bytes / kEntryBytes) bytes = 0;
  if (bytes == 0) {
    if (records_.tracks(dataset)) untrack(dataset);
    return;
  }
  std::vector<FilePages> freed;
  move_window(dataset, 0, bytes, now_ns);
  const uint64_t ahead = std::max(datasets_.at(dataset).window, waiting(dataset));
  const uint64_t rest = bytes - std::min(ahead, bytes);
  set_capacity(dataset, rest - std::min(datasets_.at(dataset).hold, rest), &freed);
  choose_policy(dataset, &freed);
  records_.on_read(session, dataset, static_cast<SampleId>(index), std::move(pages), &freed);
  uint64_t hold = 0;
  for (const auto& [id, other] : datasets_) hold += other.hold;
  drops_.hold(freed, hold);
}

void Retention::predict() {
  const std::vector<DatasetId> tracked = records_.tracked();
  for (const DatasetId dataset : tracked) predict(dataset, tracked.size());
}

// Samples whose indices are too high for a policy's tables are left out. `datasets` share in how
// much is predicted.
void Retention::predict(DatasetId dataset, size_t datasets) {
  std::vector<uint32_t> order =
      samples_->orders().upcoming(dataset, JobOrders::kMostUpcoming / datasets);
  const uint64_t end = limit(dataset) / kEntryBytes;
  std::erase_if(order, [end](uint32_t sample) { return sample >= end; });
  records_.predict(dataset, order);
}

void Retention::remove_dataset(DatasetId dataset) {
  if (datasets_.count(dataset) == 0) return;
  untrack(dataset);
  datasets_.erase(dataset);
  ++changes_;
}

// The dataset's readers have no limit any more, or have ended: Sluice must not drop their pages.
void Retention::untrack(DatasetId dataset) {
  records_.untrack(dataset);
  for (const FileId file : datasets_.at(dataset).files) drops_.remove_file(file);
}

void Retention::remove_session(SessionId session) {
  ++changes_;
  for (auto& [id, file] : files_) {
    file.users.erase(session);
    file.by_page.erase(session);
  }
  read_.erase(session);
  records_.remove_session(session);
  for (auto at = datasets_.begin(); at != datasets_.end();) {
    if (samples_ != nullptr && samples_->set(at->first) != nullptr) {
      ++at;
      continue;
    }
    untrack(at->first);
    at = datasets_.erase(at);
  }
}

void Retention::remove_file(FileId file) {
  ++changes_;
  drops_.remove_file(file);
  records_.remove_file(file);
  for (auto at = datasets_.begin(); at != datasets_.end();) {
    at->second.files.erase(file);
    if (!at->second.files.empty()) {
      ++at;
      continue;
    }
    records_.untrack(at->first);
    at = datasets_.erase(at);
  }
}

}  // namespace sluice::policy
