#include "policy/streams/strides.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kMargin = 16 << 10;        // around a predicted run: as much may each be longer
constexpr size_t kPredicted = 2;              // times the runs that were the same a period ago
constexpr uint64_t kTrust = 4;                // times the bytes of the reader's first runs
constexpr uint64_t kLeastTrust = 64 << 10;    // of a run that is longer than usual
constexpr size_t kUsual = 9;                  // runs whose median is the usual length
constexpr uint64_t kRateSpanNs = 30'000'000;  // a measurement takes at least this long

bool about(uint64_t a, uint64_t b) { return std::max(a, b) - std::min(a, b) <= Strides::kBlur; }

}  // namespace

void Strides::measure(uint64_t bytes, uint64_t time_ns) {
  marked_ += bytes;
  last_ns_ = std::max(last_ns_, time_ns);
  if (mark_ns_ == 0) mark_ns_ = time_ns;
  const uint64_t span = time_ns - std::min(time_ns, mark_ns_);
  if (span < kRateSpanNs) return;
  const double measured = static_cast<double>(marked_) * 1e9 / static_cast<double>(span);
  rate_ = rate_ == 0 ? measured : 0.6 * rate_ + 0.4 * measured;
  mark_ns_ = time_ns;
  marked_ = 0;
}

void Strides::note_place(uint64_t at) {
  ++reads_;
  std::erase_if(places_, [&](const auto& place) {
    const bool same = place.first + kBlur >= at && place.first <= at + kBlur;
    return same || place.second + kActive < reads_;
  });
  places_.insert(places_.begin(), {at, reads_});
  if (places_.size() > kPlaces) places_.pop_back();
}

bool Strides::add(Range range) {
  const auto first = std::find_if(runs_.begin(), runs_.end(),
                                  [&](const Range& run) { return run.end + kBlur >= range.begin; });
  const bool behind_all = first == runs_.end();
  auto last = first;
  for (; last != runs_.end() && last->begin <= range.end + kBlur; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  runs_.insert(runs_.erase(first, last), range);
  if (runs_.size() > kRuns) runs_.erase(runs_.begin());
  note_place(range.end);
  return behind_all;
}

bool Strides::on_read(Range range, uint64_t time_ns) {
  measure(range.length(), time_ns);
  const bool begun = add(range);
  if (!predicted()) {
    if (begun) find_pattern();
    return !predicted();
  }
  if (range.end <= begin_ + pattern_[at_].length + kBlur || (begun && follow(range.begin))) {
    return true;
  }
  find_pattern();
  return false;
}

// The run that begins there is one of the next that are expected. Some may have been read between
// without having been seen yet. What is now known of the current one is expected a period later.
bool Strides::follow(uint64_t begin) {
  Range next{begin_, begin_};  // where the run may begin
  for (size_t i = 1; i <= std::min(kSkipped, kPredicted * matched_); ++i) {
    const size_t at = (at_ + i) % pattern_.size();
    Step& step = pattern_[at];
    next = {next.begin + step.stride, next.end + step.most};
    if (begin + kBlur < next.begin || begin > next.end + step.length + kBlur) continue;
    Step& current = pattern_[at_];
    const uint64_t length = length_at(begin_);
    if (about(length, current.length)) current.length = std::max(length, current.length);
    if (begin > next.end + kBlur) {
      begin = next.begin;  // a part of it, which another thread reads
    } else if (i == 1) {
      step.stride = std::min(step.stride, begin - begin_);
      step.most = std::max(step.most, begin - begin_);
    }
    at_ = at;
    begin_ = begin;
    matched_ = std::min(matched_ + i, kRuns);
    return true;
  }
  return false;
}

uint64_t Strides::length_at(uint64_t begin) const {
  const auto run =
      std::find_if(runs_.begin(), runs_.end(), [&](const Range& one) { return one.end > begin; });
  return run == runs_.end() || run->begin > begin ? 0 : run->end - begin;
}

Strides::Step Strides::step(size_t run) const {
  const uint64_t stride = run == 0 ? 0 : runs_[run].begin - runs_[run - 1].begin;
  return {stride, stride, runs_[run].length()};
}

// How many of the last runs, the current one first, were the same `period` runs before.
size_t Strides::matched(size_t period) const {
  const size_t current = runs_.size() - 1;
  if (!about(step(current).stride, step(current - period).stride)) return 0;
  if (runs_[current].length() > runs_[current - period].length() + kBlur) return 0;
  size_t count = 1;
  for (size_t at = current - 1; at > period; --at, ++count) {
    const Step now = step(at), before = step(at - period);
    if (!about(now.length, before.length) || !about(now.stride, before.stride)) break;
  }
  return count;
}

void Strides::find_pattern() {
  pattern_.clear();
  matched_ = 0;
  const size_t current = runs_.size() - 1;
  size_t best = 0;
  for (size_t period = 1; period <= kMostPeriod && period < current; ++period) {
    const size_t count = matched(period);
    // Of many strides some is as the last one by chance.
    if (count <= matched_ || (count == 1 && period > 1)) continue;
    matched_ = count;
    best = period;
  }
  if (best == 0) return;
  for (size_t run = current + 1 - best; run <= current; ++run) pattern_.push_back(step(run));
  pattern_.back().length = runs_[current - best].length();
  at_ = best - 1;
  begin_ = runs_[current].begin;
}

uint64_t Strides::usual_length() const {
  std::vector<uint64_t> lengths;
  for (size_t i = runs_.size() - std::min(kUsual, runs_.size()); i < runs_.size(); ++i) {
    lengths.push_back(runs_[i].length());
  }
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

// How far a run of `length` bytes is expected to go on if nothing says where it ends.
uint64_t Strides::trusted(uint64_t length) const {
  if (runs_.size() <= kFew) return kTrust * length;
  const uint64_t usual = usual_length();
  if (usual > length) return usual - length;
  return std::max(std::min(kLeastTrust, length), length - usual);
}

std::vector<Range> Strides::expected(uint64_t most) const {
  std::vector<Range> out;
  const auto add = [&](uint64_t begin, uint64_t end) {
    end = std::max(std::min(end, begin + most), begin);
    most -= end - begin;
    out.push_back({begin, end});
  };
  if (!predicted()) {
    for (const auto& [place, number] : places_) {
      const auto run = std::find_if(runs_.begin(), runs_.end(),
                                    [at = place](const Range& one) { return one.end >= at; });
      if (run == runs_.end() || run->begin > place) continue;
      add(run->end, run->end + trusted(run->length()));
    }
    return out;
  }
  add(begin_ - std::min(begin_, kMargin), begin_ + pattern_[at_].length + kMargin);
  Range begin{begin_, begin_};
  for (size_t i = 1; i <= kPredicted * matched_ && most > 0; ++i) {
    const Step& next = pattern_[(at_ + i) % pattern_.size()];
    begin = {begin.begin + next.stride, begin.end + next.most};
    begin.end = std::min(begin.end, begin.begin + kBlur);
    add(begin.begin - std::min(begin.begin, kMargin), begin.end + next.length + kMargin);
  }
  return out;
}

}  // namespace sluice::policy
