#include "policy/samples/sample_order.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kNextFront = 4096;  // leading positions of the next epoch whose samples start it
constexpr uint64_t kJudged = 4096;     // pairs examined to call an order sequential
constexpr uint64_t kBlock = 32;        // positions that are compared at once
constexpr uint64_t kEachLane = 4;      // samples that a worker may be further on than the others
constexpr uint64_t kMostAtOnce = 256;

}  // namespace

void SampleOrder::publish(uint32_t epoch, uint64_t first, std::span<const uint32_t> indices,
                          bool tentative) {
  if (tentative) {
    if (any_ && epoch == epoch_ + 1) later_.expect(indices);
    return;
  }
  if (any_ && epoch < epoch_) return;
  if (!any_) {
    if (first != 0) return;
    begin_epoch(epoch, {indices.begin(), indices.end()});
    return;
  }
  if (epoch == epoch_) {
    if (first > current_.size()) return;
    // Replaced positions are no longer counted; what was fetched for them may still be used.
    for (uint64_t at = first; at < current_.size(); ++at) {
      if (taken_[at]) {
        --taken_count_;
        continue;
      }
      ahead_bytes_ -= handed_[at];
      if (handed_[at] != 0) lanes_.leave(at);
    }
    current_.resize(first);
    current_.insert(current_.end(), indices.begin(), indices.end());
    taken_.resize(first);
    taken_.resize(current_.size());
    handed_.resize(first);
    handed_.resize(current_.size());
    head_ = std::min(head_, first);
    lanes_.return_to(first);
    cursor_ = std::min(cursor_, first);
    handed_end_ = std::min(handed_end_, first);
    last_taken_ = std::min(last_taken_, first);
    judge();
    return;
  }
  if (later_.publish(epoch, first, indices)) begin_waiting();
}

void SampleOrder::begin_epoch(uint32_t epoch, std::vector<uint32_t> indices) {
  later_.begin();
  if (spread_.count != 0) spread_.usual = 2 * spread_.sum / spread_.count;
  spread_.sum = spread_.count = 0;
  any_ = true;
  epoch_ = epoch;
  current_ = std::move(indices);
  taken_.assign(current_.size(), false);
  handed_.assign(current_.size(), 0);
  head_ = cursor_ = handed_end_ = last_taken_ = taken_count_ = ahead_bytes_ = 0;
  lanes_.begin_epoch();
  judge();
}

uint64_t SampleOrder::held() const {
  return (current_.size() + later_.positions()) * kPositionBytes;
}

void SampleOrder::judge() {
  const uint64_t pairs = std::min<uint64_t>(current_.size(), kJudged);
  uint64_t neighbours = 0;
  for (uint64_t at = 1; at < pairs; ++at) {
    neighbours += current_[at] == current_[at - 1] + 1 ? 1 : 0;
  }
  sequential_ = pairs > 1 && neighbours * 2 > pairs;
}

std::optional<uint64_t> SampleOrder::find(uint32_t index, uint64_t most) const {
  const uint64_t end = std::min<uint64_t>(current_.size(), head_ + most);
  uint64_t at = head_;
  while (at < end) {
    // Whole blocks without the sample are skipped with a few instructions each: this search runs
    // for every sample that begins.
    for (; at + kBlock <= end; at += kBlock) {
      const uint32_t* block = &current_[at];
      uint32_t here = 0;
      for (uint64_t i = 0; i < kBlock; ++i) here |= block[i] == index ? 1U : 0U;
      if (here != 0) break;
    }
    for (const uint64_t last = std::min(at + kBlock, end); at < last; ++at) {
      if (current_[at] == index && !taken_[at]) return at;
    }
  }
  return std::nullopt;
}

void SampleOrder::give_up(uint64_t position) {
  if (taken_[position]) return;
  taken_[position] = true;
  ++taken_count_;
  ahead_bytes_ -= handed_[position];
  if (handed_[position] != 0) lanes_.leave(position);
}

bool SampleOrder::take_at(uint64_t position, uint64_t reader) {
  for (; head_ + kNextFront < position; ++head_) give_up(head_);
  taken_[position] = true;
  last_taken_ = std::max(last_taken_, position + 1);
  ++taken_count_;
  ahead_bytes_ -= handed_[position];
  if (handed_[position] != 0) lanes_.leave(position);
  while (head_ < current_.size() && taken_[head_]) ++head_;
  if (lanes_.take(reader, position, head_)) count_ahead();
  spread_.sum += apart();
  ++spread_.count;
  return true;
}

// In lanes that are new.
void SampleOrder::count_ahead() {
  for (uint64_t at = head_; at < handed_end_; ++at) {
    if (!taken_[at] && handed_[at] != 0) lanes_.enter(at);
  }
}

void SampleOrder::set_sequence(bool own) {
  if (lanes_.allow(!own, head_)) count_ahead();
}

SampleOrder::Beyond SampleOrder::beyond() const {
  const bool begins = taken_count_ < spread_.usual;
  if (lanes_.count() > 1 && !lanes_.doubted()) {
    return {lanes_.count() * (spread_.at_once != 0 ? 2 * lanes_.batch() : kEachLane), true, begins};
  }
  const uint64_t mean = spread_.count == 0 ? 0 : spread_.sum / spread_.count;
  return {std::max({apart(), 2 * mean, spread_.usual}), false, begins};
}

void SampleOrder::begin_waiting() {
  if (head_ < current_.size() || later_.empty()) return;
  auto [epoch, indices] = later_.take_first();
  begin_epoch(epoch, std::move(indices));
}

std::vector<uint32_t> SampleOrder::next(size_t most) const {
  std::vector<uint64_t> runs;  // where the samples are that come next
  const uint64_t end = std::min<uint64_t>(current_.size(), std::max(head_, last_taken_) + 1);
  for (uint64_t at = head_; at < end && runs.size() < most; ++at) {
    if (!taken_[at] && (at == head_ || taken_[at - 1])) runs.push_back(at);
  }
  std::vector<uint32_t> next;
  while (!runs.empty() && next.size() < most) {
    for (uint64_t& at : runs) {
      if (next.size() < most) next.push_back(current_[at]);
      ++at;
    }
    std::erase_if(runs, [this](uint64_t at) { return at >= current_.size() || taken_[at]; });
    // Two meet where one worker's batch ends and the next one has not begun.
    runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  }
  return next;
}

bool SampleOrder::take(uint32_t index, uint64_t reader, bool at_once) {
  uint64_t& together = spread_.at_once;
  together =
      at_once ? std::min(together + 1, kMostAtOnce) : together - std::min<uint64_t>(together, 1);
  // Near the front of the running epoch first: that is where its workers are.
  if (const auto near = find(index, kNextFront)) return take_at(*near, reader);
  if (!later_.empty()) {
    const std::vector<uint32_t>& next = later_.first();
    const auto end =
        next.begin() + static_cast<ptrdiff_t>(std::min<size_t>(next.size(), kNextFront));
    // The job aborted its epoch, or read it to the end.
    if (std::find(next.begin(), end, index) != end) {
      auto [epoch, indices] = later_.take_first();
      begin_epoch(epoch, std::move(indices));
      return take_at(*find(index, kNextFront), reader);
    }
  }
  if (const auto far = find(index, kFront)) return take_at(*far, reader);
  return false;
}

std::optional<uint32_t> SampleOrder::peek() {
  const auto next = [this] {
    return lanes_.next(
        current_.size(), [this](uint64_t at) { return bool{taken_[at]}; },
        [this](uint64_t at) { return handed_[at] != 0; });
  };
  uint64_t found = next();
  if (found >= current_.size()) {
    // The next epoch may have been published before the last events of this one arrived.
    begin_waiting();
    found = next();
    if (found >= current_.size()) return std::nullopt;
  }
  cursor_ = found;
  return current_[cursor_];
}

void SampleOrder::hand_out(uint32_t bytes) {
  handed_[cursor_] = bytes;
  ahead_bytes_ += bytes;
  lanes_.pass(bytes != 0);
  handed_end_ = std::max(handed_end_, cursor_ + 1);
}

void SampleOrder::restart() {
  for (uint64_t at = head_; at < handed_end_ && at < current_.size(); ++at) {
    if (taken_[at] || handed_[at] == 0) continue;
    handed_[at] = 0;
    lanes_.leave(at);
  }
  ahead_bytes_ = 0;
  handed_end_ = head_;
  lanes_.return_to(head_);
}

void SampleOrder::lighten(uint32_t bytes) {
  if (cursor_ >= current_.size() || taken_[cursor_] || handed_[cursor_] == 0) return;
  uint32_t& handed = handed_[cursor_];
  const uint32_t less = std::min(bytes, handed - 1);  // 0 would hand it out again
  handed -= less;
  ahead_bytes_ -= less;
}

}  // namespace sluice::policy
