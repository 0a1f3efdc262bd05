#include "policy/streams/descents.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kTrust = 4;  // times what was read of a descent whose end is not known
constexpr uint64_t kMostTrust = 16 << 20;
constexpr uint64_t kLeastTrust = 64 << 10;  // of one that is longer than usual
constexpr uint64_t kLongShare = 2;          // divisor of what was read: added to that

uint64_t less(uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); }

}  // namespace

// The most recent run is over, and another one began.
void Descents::chain() {
  const Run& last = runs_.back();
  if (!descends(last)) return;
  const bool follows = top_ != 0 && last.low <= top_ + kBlur && last.low + kBlur >= top_;
  chained_ = follows ? chained_ + 1 : 0;
  top_ = last.high;
  lengths_.push_back(last.length());
  if (lengths_.size() > kLengths) lengths_.erase(lengths_.begin());
}

bool Descents::on_read(Range range) {
  const auto at = std::find_if(runs_.rbegin(), runs_.rend(), [&](const Run& run) {
    return range.end + kBlur >= run.low && range.begin <= run.high + kBlur;
  });
  quiet_ += quiet_ < kQuiet ? 1 : 0;
  if (at == runs_.rend() || range.end > at->high + kBlur) {
    if (!runs_.empty()) chain();
    if (runs_.size() == kRuns) runs_.erase(runs_.begin());
    runs_.push_back({range.begin, range.end, 0});
    return false;
  }
  Run run = *at;
  runs_.erase(std::prev(at.base()));
  const bool down = range.begin < run.low;
  run.steps += down ? 1 : 0;
  run.low = std::min(run.low, range.begin);
  run.high = std::max(run.high, range.end);
  runs_.push_back(run);
  if (!down || !descends(run)) return false;
  quiet_ = 0;
  return true;
}

// Where the descent ends, or how far it is trusted.
uint64_t Descents::floor_of(const Run& run, uint64_t most) const {
  if (chained_ != 0 && top_ <= run.low) return std::max(top_, less(run.low, most));
  return less(run.low, std::min(trusted(run.length()), most));
}

// How far a descent of `length` bytes is expected to go on if nothing says where it ends.
uint64_t Descents::trusted(uint64_t length) const {
  if (lengths_.size() < kFew) return std::min(kTrust * length, kMostTrust + length / kLongShare);
  std::vector<uint64_t> lengths = lengths_;
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  if (*middle > length) return *middle - length;
  return std::max(std::min(kLeastTrust, length), length - *middle);
}

std::vector<Range> Descents::expected(uint64_t most) const {
  std::vector<Range> out;
  if (runs_.empty()) return out;
  const Run& run = runs_.back();
  if (chained_ == 0 && !descends(run)) return out;
  const uint64_t floor = floor_of(run, most);
  for (uint64_t end = run.low; end > floor;) {
    const uint64_t begin = std::max(floor, less(end, 1) / kPiece * kPiece);
    out.push_back({begin, end});
    most -= std::min(most, end - begin);
    end = begin;
  }
  if (chained_ != 0 && most != 0) {
    out.push_back({run.high, run.high + std::min(most, lengths_.back())});
  }
  return out;
}

}  // namespace sluice::policy
