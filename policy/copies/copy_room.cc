#include "policy/copies/copy_room.h"

#include <unordered_map>

namespace sluice::policy {
namespace {

using State = StagedCopy::State;

constexpr uint64_t kMinWindow = 4 << 20;
// Prefetching may take this much from copies that will be read again in the same epoch, or what the
// link holds if that is but a small part of the memory; beyond that it waits until some of them
// were read, since each one evicted must be fetched again. This does not apply where the window is
// a large part of the memory: an idle link costs more than what could be retained.
constexpr uint64_t kMayTake = 1 << 20, kInFlightShare = 32;
constexpr uint64_t kLargeWindow = 4;  // times the window: with less memory, the window comes first
constexpr uint64_t kMaxWindow = 512 << 20;
constexpr uint64_t kSpareShare = 8;  // of the window, for readers that are out of order
constexpr uint64_t kHeadroom = 16;   // reserve below the maximum number of copies

}  // namespace

CopyRoom::CopyRoom(FileTable* files, CopyTable* table, CopyMounts* mounts)
    : files_(*files), table_(*table), mounts_(*mounts) {
  make_policy(PolicyKind::kAuto);
}

void CopyRoom::set_policy(PolicyKind kind) {
  if (kind != policy_kind_) make_policy(kind);
}

void CopyRoom::make_policy(PolicyKind kind) {
  policy_kind_ = kind;
  most_ahead_ = most_window_ = UINT64_MAX;
  policy_ = policy_info(kind).make(limit() - std::min(limit(), table_.ahead()), files_.size());
  for (const auto& [file, entry] : table_.all()) {
    const uint32_t at = number(file);
    if (at < importance_.size()) policy_->set_importance(at, importance_[at]);
    if (entry.state == State::kRetained) offer(kNoSession, file, *table_.find(file));
  }
}

void CopyRoom::set_importance(SampleFileId file, float importance) {
  const uint32_t at = number(file);
  if (at >= importance_.size()) {
    importance_.resize(std::max<size_t>(size_t{at} + 1, files_.size()));
  }
  importance_[at] = importance;
  policy_->set_importance(at, importance);
}

// It is set again and again: what was promised to stay is in a budget that is no smaller.
void CopyRoom::set_budget(uint64_t bytes, uint64_t copies) {
  const uint64_t before = limit();
  budget_ = bytes;
  max_copies_ = copies;
  limit_ = UINT64_MAX;
  if (limit() < before) {
    most_ahead_ = most_window_ = UINT64_MAX;
  } else if (most_ahead_ != UINT64_MAX) {
    most_ahead_ += limit() - before;
    most_window_ += limit() - before;
  }
  make_room(0);
}

void CopyRoom::on_full() {
  limit_ = table_.used() / 8 * 7;
  most_ahead_ = most_window_ = UINT64_MAX;
  make_room(0);
}

uint64_t CopyRoom::keeps_busy(uint64_t spread, uint64_t now_ns, uint64_t depths) const {
  return std::min(
      {std::max(kMinWindow, mounts_.window(spread, now_ns, depths)), kMaxWindow, limit() / 2});
}

uint64_t CopyRoom::window(uint64_t beyond, uint64_t head_start, uint64_t now_ns) {
  const auto most = [&](uint64_t files) {
    return std::min(keeps_busy(files, now_ns, CopyMounts::kDepths), most_window_);
  };
  in_flight_ = mounts_.window(0, now_ns, 1);
  window_ = most(beyond);
  return std::min(head_start == 0 ? window_ : most(beyond + head_start), most_ahead_);
}

uint64_t CopyRoom::retainable(uint64_t beyond, uint64_t now_ns) {
  const uint64_t window = keeps_busy(beyond, now_ns, CopyMounts::kLeastDepths);
  most_window_ = window;
  most_ahead_ = std::min(window + window / kSpareShare, limit());
  return limit() - most_ahead_;
}

bool CopyRoom::may_add_copy() const { return table_.all().size() + kHeadroom < max_copies_; }

// If nothing is ahead any copy is allowed: a larger one than the bound would never be staged.
bool CopyRoom::may_be_ahead(uint64_t bytes) const {
  return table_.ahead() == 0 || table_.ahead() + bytes <= most_ahead_;
}

bool CopyRoom::make_room_ahead(uint64_t bytes) {
  const uint64_t ahead = table_.ahead() + bytes;
  const uint64_t may_take = std::max(kMayTake, std::min(in_flight_, limit() / kInFlightShare));
  const bool window_first = limit() < kLargeWindow * window_ && ahead <= window_;
  const bool spares_awaited = ahead + table_.awaited() <= limit();
  return may_be_ahead(bytes) && (ahead <= may_take || window_first || spares_awaited) &&
         make_room(bytes);
}

void CopyRoom::offer(SessionId session, SampleFileId file, StagedCopy& copy) {
  decided(file, copy, policy_->access(number(session), number(file), copy.charged, &victims_));
}

void CopyRoom::offer_unread(SampleFileId file, StagedCopy& copy) {
  decided(file, copy, policy_->offer(number(file), copy.charged, &victims_));
}

// It is spent if the policy refuses it.
void CopyRoom::decided(SampleFileId file, StagedCopy& copy, Decision decision) {
  table_.set_state(file, copy, decision == Decision::kPass ? State::kSpent : State::kRetained);
  release_victims();
}

// Copies that the policy evicted become spent, unless a reader is about to need them.
void CopyRoom::release_victims() {
  for (const SampleId victim : victims_) {
    const SampleFileId file{victim};
    StagedCopy* copy = table_.find(file);
    if (copy == nullptr || copy->state != State::kRetained) continue;
    table_.set_state(file, *copy, copy->readers > 0 ? State::kAhead : State::kSpent);
  }
  victims_.clear();
}

void CopyRoom::fit_policy(uint64_t bytes) {
  const uint64_t taken = table_.ahead() + bytes;
  policy_->set_capacity(limit() - std::min(limit(), taken), &victims_);
  release_victims();
}

bool CopyRoom::make_room(uint64_t bytes) {
  while (table_.used() + bytes > limit()) {
    const uint64_t ahead = table_.ahead();
    fit_policy(bytes);
    SampleFileId file = FileTable::kNone;
    while (table_.used() + bytes > limit() && (file = table_.take_spent()) != FileTable::kNone) {
      evict(file);
    }
    // What the policy gave up, and a reader is about to need, is ahead now: it gives up others.
    if (file == FileTable::kNone && table_.ahead() == ahead) break;
  }
  return table_.used() + bytes <= limit();
}

void CopyRoom::predict(const UpcomingFiles& coming) {
  std::vector<uint8_t> wanted(files_.size() + 1);
  std::vector<SampleId> numbers;
  numbers.reserve(coming.order.size());
  for (const SampleFileId file : coming.order) {
    uint8_t& times = wanted[number(file)];
    times += times < StagedCopy::kMostAwaited ? 1 : 0;
    numbers.push_back(number(file));
  }
  policy_->clear_order();
  if (!numbers.empty()) policy_->append_order(numbers);
  std::unordered_map<SampleFileId, uint32_t> readers;
  for (const SampleFileId file : coming.readers) ++readers[file];
  const std::vector<SampleFileId> left = table_.await(wanted, readers);
  fit_policy();
  for (const SampleFileId file : left) offer_unread(file, *table_.find(file));
}

void CopyRoom::evict(SampleFileId file) {
  const StagedCopy* copy = table_.find(file);
  if (copy == nullptr) return;
  if (copy->state == State::kRetained) policy_->drop(number(file));
  if (copy->checking) mounts_.end(*copy, 0, CopyMounts::Counts::kNot, 0);
  table_.evict(file);
}

}  // namespace sluice::policy
