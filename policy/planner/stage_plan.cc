#include "policy/planner/stage_plan.h"

namespace sluice::optimizer {
namespace {

constexpr uint64_t kMinWindow = 4 << 20;
// Prefetching may take this much from copies that will be read again in the same epoch; beyond that
// it waits until some of them were read, since each one evicted must be fetched again. This does
// not apply where the window is a large part of the memory: an idle link costs more than what could
// be retained.
constexpr uint64_t kMayTake = 1 << 20;
constexpr uint64_t kLargeWindow = 4;  // times the window: with less memory, the window comes first
constexpr uint64_t kMaxWindow = 512 << 20;
constexpr uint64_t kSpareShare = 8;  // of the window, for readers that are out of order
constexpr uint64_t kDepths = 3;      // one link's content in flight, one arrived, one in reserve
// A reader of an original in the page cache still opens it: about half of the cost is not saved.
constexpr uint64_t kOpenShare = 2;
constexpr uint64_t kHeadroom = 16;  // reserve below the maximum number of copies

}  // namespace

StagePlan::StagePlan(FileTable* files) : files_(files) { make_policy(PolicyKind::kAuto); }

void StagePlan::set_policy(PolicyKind kind) {
  if (kind != policy_kind_) make_policy(kind);
}

void StagePlan::make_policy(PolicyKind kind) {
  policy_kind_ = kind;
  most_ahead_ = UINT64_MAX;
  policy_ = policy_info(kind).make(limit() - std::min(limit(), ahead_), files_->size());
  for (auto& [file, entry] : entries_) {
    if (file < importance_.size()) policy_->set_importance(file, importance_[file]);
    if (entry.place == Place::kKept) offer(0, file, entry);
  }
}

void StagePlan::set_importance(uint32_t file, float importance) {
  if (file >= importance_.size()) {
    importance_.resize(std::max<size_t>(size_t{file} + 1, files_->size()));
  }
  importance_[file] = importance;
  policy_->set_importance(file, importance);
}

void StagePlan::set_budget(uint64_t bytes, uint64_t copies) {
  budget_ = bytes;
  max_copies_ = copies;
  limit_ = UINT64_MAX;
  most_ahead_ = UINT64_MAX;
  make_room(0);
}

uint64_t StagePlan::device_of(uint32_t file) const {
  const uint32_t folder = files_->folder(file);
  return folder < folder_device_.size() ? folder_device_[folder] : 0;
}

StagePlan::Flow StagePlan::flow(uint64_t now_ns) const {
  Flow sum;
  for (const auto& [device, mount] : mounts_) {
    if (mount.files == 0) continue;
    sum.in_flight += mount.in_flight;
    sum.depth += mount.model.depth(now_ns);
    sum.bandwidth += static_cast<uint64_t>(mount.model.bandwidth()) * (mount.bytes / mount.files);
  }
  return sum;
}

uint64_t StagePlan::window(uint64_t spread, uint64_t now_ns) {
  uint64_t most = kMinWindow;
  for (const auto& [device, mount] : mounts_) {
    if (mount.files == 0) continue;
    const uint64_t mean = mount.charged / mount.files + 1;
    most = std::max(most, (kDepths * mount.model.depth(now_ns) + spread) * mean);
  }
  window_ = std::min({most, kMaxWindow, limit() / 2});
  return std::min(window_, most_ahead_);
}

uint64_t StagePlan::keepable() {
  const uint64_t window = std::max(window_, std::min(kMinWindow, limit() / 2));
  most_ahead_ = std::min(window + window / kSpareShare, limit());
  return limit() - most_ahead_;
}

bool StagePlan::retains(uint32_t file) const {
  const auto at = entries_.find(file);
  return at != entries_.end() && at->second.place != Place::kFetching && at->second.read;
}

FetchVerdict StagePlan::judge(uint32_t file, uint64_t now_ns) {
  if (files_->refused(file) != FileTable::Refused::kNo) return FetchVerdict::kNever;
  const auto at = entries_.find(file);
  Mount& mount = mounts_[at == entries_.end() ? device_of(file) : at->second.device];
  const bool busy = mount.in_flight >= mount.model.depth(now_ns);
  if (at != entries_.end()) {
    Entry& entry = at->second;
    const bool old =
        stale_ns_ != 0 && now_ns - std::min(now_ns, entry.validated_ns) > stale_ns_ / 2;
    const bool look = entry.place != Place::kFetching && old && !entry.checking && !entry.to_cache;
    const bool comes_back = entry.place == Place::kSpent;
    if ((look && busy) || (comes_back && !may_be_ahead(entry.charged))) return FetchVerdict::kLater;
    ++entry.wants;
    if (comes_back) {
      entry.place = Place::kAhead;
      ahead_ += entry.charged;
    }
    return look ? FetchVerdict::kTake : FetchVerdict::kNever;
  }
  if (busy || entries_.size() + kHeadroom >= max_copies_) return FetchVerdict::kLater;
  const uint64_t wanted = FileTable::charge(files_->bytes(file));
  if (wanted > limit()) {
    files_->refuse(file);
    return FetchVerdict::kNever;
  }
  if (!may_be_ahead(wanted)) return FetchVerdict::kLater;
  return spares_awaited(wanted) && make_room(wanted) ? FetchVerdict::kTake : FetchVerdict::kLater;
}

PlannedFetch StagePlan::start(uint32_t file, uint32_t session, uint64_t now_ns, uint32_t dataset) {
  const auto [at, added] = entries_.try_emplace(file);
  Entry& entry = at->second;
  if (added) {
    entry.device = device_of(file);
    entry.charged = FileTable::charge(files_->bytes(file));
    entry.wants = 1;
    entry.dataset = dataset;
    entry.to_cache = originals_.contains(dataset) || files_->only_locked(file);
    used_ += entry.charged;
    ahead_ += entry.charged;
  } else {
    entry.checking = true;
  }
  Mount& mount = mounts_[entry.device];
  entry.session = session;
  entry.token = next_token_++;
  entry.issued_ns = now_ns;
  entry.sample = mount.model.on_issue(now_ns, mount.in_flight++);
  ++flying_;
  return {entry.token, file, session, !added, entry.to_cache};
}

void StagePlan::ended(const Entry& entry, uint64_t bytes, Counts counts, uint64_t now_ns,
                      uint64_t took_ns) {
  Mount& mount = mounts_[entry.device];
  --mount.in_flight;
  --flying_;
  if (counts == Counts::kNot) return;
  mount.bytes += bytes;
  mount.charged += FileTable::charge(bytes);
  ++mount.files;
  mount.model.on_done(entry.sample, 1, now_ns, counts == Counts::kRateAndLatency, took_ns);
}

StagePlan::Entry* StagePlan::find(const PlannedFetch& fetch) {
  const auto at = entries_.find(fetch.file);
  return at == entries_.end() || at->second.token != fetch.token ? nullptr : &at->second;
}

void StagePlan::spend(uint32_t file, Entry& entry) {
  set_place(entry, Place::kSpent);
  if (!entry.queued) spent_.push_back(file);
  entry.queued = true;
}

bool StagePlan::on_staged(const PlannedFetch& fetch, uint64_t device, uint64_t bytes,
                          uint64_t charged, uint64_t now_ns, bool from_storage, uint64_t took_ns) {
  Entry* entry = find(fetch);
  if (entry == nullptr) return false;
  // Fetches in flight at the same time share the storage's time.
  entry->took_ns = (now_ns - std::min(now_ns, entry->issued_ns)) /
                   std::max(1U, mounts_[entry->device].in_flight);
  ended(*entry, bytes, from_storage ? Counts::kRateAndLatency : Counts::kRate, now_ns, took_ns);
  used_ -= entry->charged;
  ahead_ -= entry->charged;
  files_->set_bytes(fetch.file, bytes);
  const uint32_t folder = files_->folder(fetch.file);
  if (folder >= folder_device_.size()) folder_device_.resize(files_->folders());
  folder_device_[folder] = device;
  if (entry->dropped || charged > limit()) {
    entries_.erase(fetch.file);
    return false;
  }
  // Counted at `device` from now on; this fetch may have been the first from there.
  if (mounts_[device].files == 0) {
    mounts_[device].files = 1;
    mounts_[device].bytes = bytes;
    mounts_[device].charged = charged;
  }
  entry->device = device;
  entry->bytes = bytes;
  entry->charged = charged;
  entry->staged_ns = now_ns;
  if (!entry->to_cache) looked_at(fetch.file, *entry);
  used_ += charged;
  if (entry->wants > 0) {
    set_place(*entry, Place::kAhead);
    ahead_ += charged;
  } else {  // its reader read the original meanwhile
    spend(fetch.file, *entry);
  }
  make_room(0);
  return entries_.count(fetch.file) != 0;
}

bool StagePlan::on_valid(const PlannedFetch& fetch) {
  Entry* entry = find(fetch);
  if (entry == nullptr || !entry->checking) return false;
  ended(*entry, 0, Counts::kNot, 0);
  entry->checking = false;
  looked_at(fetch.file, *entry);
  return true;
}

void StagePlan::looked_at(uint32_t file, Entry& entry) {
  entry.validated_ns = entry.issued_ns;
  looked_.emplace_back(file, entry.validated_ns);
}

void StagePlan::look_again(uint64_t now_ns, std::vector<PlannedFetch>* checks) {
  while (!again_.empty()) {
    const auto [file, session] = again_.front();
    const FetchVerdict verdict = judge(file, now_ns);
    if (verdict == FetchVerdict::kLater) return;
    again_.pop_front();
    if (verdict == FetchVerdict::kTake) checks->push_back(start(file, session, now_ns));
  }
  if (stale_ns_ == 0) return;  // each reader validates the copy itself
  while (!looked_.empty() && now_ns - looked_.front().second > stale_ns_ / 2) {
    const auto [file, when] = looked_.front();
    const auto at = entries_.find(file);
    const bool current = at != entries_.end() && at->second.validated_ns == when;
    if (current && at->second.wants > 0 && !at->second.checking) {
      const Mount& mount = mounts_[at->second.device];
      if (mount.in_flight >= mount.model.depth(now_ns)) return;
      checks->push_back(start(file, at->second.session, now_ns));
    }
    looked_.pop_front();
  }
}

void StagePlan::on_failed(const PlannedFetch& fetch, Failure failure) {
  Entry* entry = find(fetch);
  if (entry == nullptr) return;
  if (failure == Failure::kMount) files_->refuse_folder(files_->folder(fetch.file));
  if (failure == Failure::kError) files_->refuse(fetch.file);
  if (entry->place != Place::kFetching) {
    if (failure == Failure::kChanged && entry->wants > 0) {
      again_.emplace_back(fetch.file, entry->session);
    }
    evict(fetch.file);
    return;
  }
  ended(*entry, 0, Counts::kNot, 0);
  used_ -= entry->charged;
  ahead_ -= entry->charged;
  entries_.erase(fetch.file);
  if (failure == Failure::kFull) {  // what is there now is about what fits
    limit_ = used_ / 8 * 7;
    most_ahead_ = UINT64_MAX;
    make_room(0);
  }
}

void StagePlan::set_awaited(Entry& entry, bool awaited) {
  if (entry.place == Place::kKept && entry.awaited != awaited) {
    awaited_ += awaited ? entry.charged : 0;
    awaited_ -= awaited ? 0 : entry.charged;
  }
  entry.awaited = awaited;
}

void StagePlan::set_place(Entry& entry, Place place) {
  if (entry.awaited && entry.place == Place::kKept) awaited_ -= entry.charged;
  if (entry.awaited && place == Place::kKept) awaited_ += entry.charged;
  entry.place = place;
}

// If nothing is ahead any copy is allowed: a larger one than the bound would never be staged.
bool StagePlan::may_be_ahead(uint64_t bytes) const {
  return ahead_ == 0 || ahead_ + bytes <= most_ahead_;
}

bool StagePlan::spares_awaited(uint64_t bytes) const {
  return ahead_ + bytes <= kMayTake || limit() < kLargeWindow * window_ ||
         ahead_ + awaited_ + bytes <= limit();
}

// The copy was not read, and will not be.
void StagePlan::waste(Entry& entry) {
  if (entry.read || entry.took_ns == 0) return;
  wasted_.push_back({entry.dataset, entry.took_ns});
  entry.took_ns = 0;
}

// Offers the copy to the policy; it is spent if the policy refuses it. REQUIRES: counted in used_,
// not in ahead_.
void StagePlan::offer(uint32_t session, uint32_t file, Entry& entry) {
  const Decision decision = policy_->access(session, file, entry.charged, &victims_);
  if (decision == Decision::kPass) {
    spend(file, entry);
  } else {
    set_place(entry, Place::kKept);
  }
  evict_kept();
}

Hit StagePlan::on_read(uint32_t session, uint32_t file) {
  const auto at = entries_.find(file);
  if (at == entries_.end()) {
    policy_->passed(file);
    return {};
  }
  Entry& entry = at->second;
  if (entry.place == Place::kFetching) {  // its reader did not wait for the fetch
    policy_->passed(file);
    if (entry.wants > 0) --entry.wants;
    return {};
  }
  Hit hit;
  (entry.read ? hit.again_bytes : hit.first_bytes) = entry.bytes;
  hit.saved = demand(file);
  if (entry.to_cache) hit.saved.alone_ns /= kOpenShare;
  entry.read = true;
  set_awaited(entry, false);
  if (entry.wants > 0) --entry.wants;
  if (entry.place == Place::kAhead) {
    if (entry.wants > 0) {  // another reader needs it, too
      policy_->passed(file);
      return hit;
    }
    ahead_ -= entry.charged;
    fit_policy(0);
  }
  if (entry.to_cache) {
    set_place(entry, Place::kSpent);
    policy_->passed(file);
    evict(file);
  } else {
    offer(session, file, entry);
  }
  return hit;
}

void StagePlan::drop(uint32_t file) {
  const auto at = entries_.find(file);
  if (at == entries_.end()) return;
  if (at->second.place == Place::kFetching) {
    at->second.dropped = true;
  } else {
    evict(file);
  }
}

void StagePlan::need_originals(uint32_t dataset) {
  if (!originals_.insert(dataset).second) return;
  files_->accept_locked();
  drop_dataset(dataset);
}

void StagePlan::drop_dataset(uint32_t dataset) {
  std::vector<uint32_t> copied;
  for (const auto& [file, entry] : entries_) {
    if (entry.dataset == dataset) copied.push_back(file);
  }
  for (const uint32_t file : copied) drop(file);
}

void StagePlan::drop_all() {
  std::vector<uint32_t> all;
  for (const auto& [file, entry] : entries_) all.push_back(file);
  for (const uint32_t file : all) drop(file);
}

void StagePlan::evict(uint32_t file) {
  const auto at = entries_.find(file);
  if (at == entries_.end()) return;
  Entry& entry = at->second;
  waste(entry);
  if (entry.place == Place::kKept) policy_->drop(file);
  if (entry.place == Place::kKept && entry.awaited) awaited_ -= entry.charged;
  if (entry.place == Place::kAhead) ahead_ -= entry.charged;
  used_ -= entry.charged;
  if (entry.checking) ended(entry, 0, Counts::kNot, 0);
  evicted_.push_back(file);
  entries_.erase(at);
}

// Copies that the policy evicted become spent, unless a reader is about to need them.
void StagePlan::evict_kept() {
  for (const uint32_t file : victims_) {
    const auto at = entries_.find(file);
    if (at == entries_.end() || at->second.place != Place::kKept) continue;
    if (at->second.wants > 0) {
      set_place(at->second, Place::kAhead);
      ahead_ += at->second.charged;
    } else {
      spend(file, at->second);
    }
  }
  victims_.clear();
}

// The policy's capacity is what copies that are ahead, and `bytes` more, leave of the limit.
void StagePlan::fit_policy(uint64_t bytes) {
  const uint64_t taken = ahead_ + bytes;
  policy_->set_capacity(limit() - std::min(limit(), taken), &victims_);
  evict_kept();
}

bool StagePlan::make_room(uint64_t bytes) {
  if (used_ + bytes <= limit()) return true;
  fit_policy(bytes);
  while (used_ + bytes > limit() && !spent_.empty()) {
    const uint32_t file = spent_.front();
    spent_.pop_front();
    const auto at = entries_.find(file);
    if (at == entries_.end()) continue;
    at->second.queued = false;
    if (at->second.place == Place::kSpent) evict(file);
  }
  return used_ + bytes <= limit();
}

void StagePlan::predict(std::span<const uint32_t> order) {
  files_->retry_refused();
  policy_->forget_order();
  if (!order.empty()) policy_->know_order(order);
  std::vector<bool> wanted(files_->size() + 1);
  for (const uint32_t file : order) wanted[file] = true;
  for (auto& [file, entry] : entries_) {
    set_awaited(entry, wanted[file]);
    if (wanted[file]) continue;
    entry.wants = 0;
    if (entry.place != Place::kAhead) continue;
    waste(entry);
    ahead_ -= entry.charged;
    spend(file, entry);
  }
  fit_policy(0);
}

Demand StagePlan::demand(uint32_t file) const {
  const auto at = entries_.find(file);
  const auto mount = mounts_.find(at == entries_.end() ? device_of(file) : at->second.device);
  if (mount == mounts_.end()) return {};
  const StorageModel& model = mount->second.model;  // its unit is files: each counts as one byte
  const double rate = model.bandwidth();
  return {model.usual_ns(), rate > 0 ? 1e9 / rate : 0};
}

double StagePlan::file_ns(uint32_t file) const {
  const auto mount = mounts_.find(device_of(file));
  const double rate = mount == mounts_.end() ? 0 : mount->second.model.bandwidth();
  return rate > 0 ? 1e9 / rate : 0;
}

bool StagePlan::offers_copy(uint32_t file, uint64_t time_ns) const {
  const auto at = entries_.find(file);
  return at != entries_.end() && at->second.place != Place::kFetching && !at->second.to_cache &&
         at->second.staged_ns <= time_ns;
}

StagePlan::Has StagePlan::has(uint32_t file) const {
  const auto at = entries_.find(file);
  if (at == entries_.end() || at->second.dropped) return Has::kNot;
  return at->second.place == Place::kFetching ? Has::kComing : Has::kStaged;
}

}  // namespace sluice::optimizer
