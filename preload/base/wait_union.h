// The time that several threads and processes waited, overlaps counted once: a union of intervals.
// No system calls; the caller serializes access. All zero bytes are an empty union.
#pragma once

#include <cstdint>

namespace sluice::preload {

class WaitUnion {
 public:
  // Adds [begin, end), ns; returns how much of it was not in the union before.
  //
  // Intervals may be added in any order. If there are more than kMost disjoint ones, the two
  // nearest of the older half are merged: the gap between them then counts as covered, and is not
  // counted if a later interval includes it.
  uint64_t add(uint64_t begin, uint64_t end) {
    if (end <= begin) return 0;
    uint32_t first = 0;
    while (first < used_ && spans_[first].end < begin) ++first;
    uint32_t last = first;  // one past the spans that meet [begin, end)
    uint64_t covered = 0;
    Span merged{begin, end};
    for (; last < used_ && spans_[last].begin <= end; ++last) {
      const Span& span = spans_[last];
      const uint64_t from = span.begin > begin ? span.begin : begin;
      const uint64_t to = span.end < end ? span.end : end;
      if (to > from) covered += to - from;
      if (span.begin < merged.begin) merged.begin = span.begin;
      if (span.end > merged.end) merged.end = span.end;
    }
    replace(first, last, merged);
    return end - begin - covered;
  }

  static constexpr uint32_t kMost = 128;

 private:
  struct Span {
    uint64_t begin, end;
  };

  void replace(uint32_t first, uint32_t last, Span span) {
    if (last > first) {
      spans_[first] = span;
      const uint32_t gone = last - first - 1;
      for (uint32_t i = first + 1; i + gone < used_; ++i) spans_[i] = spans_[i + gone];
      used_ -= gone;
      return;
    }
    for (uint32_t i = used_; i > first; --i) spans_[i] = spans_[i - 1];
    spans_[first] = span;
    if (++used_ > kMost) join_nearest();
  }

  void join_nearest() {
    uint32_t nearest = 0;
    for (uint32_t i = 1; i < kMost / 2; ++i) {
      if (gap(i) < gap(nearest)) nearest = i;
    }
    spans_[nearest].end = spans_[nearest + 1].end;
    for (uint32_t i = nearest + 1; i + 1 < used_; ++i) spans_[i] = spans_[i + 1];
    --used_;
  }
  uint64_t gap(uint32_t i) const { return spans_[i + 1].begin - spans_[i].end; }

  uint32_t used_;
  Span spans_[kMost + 1];  // disjoint, ascending
};

}  // namespace sluice::preload
