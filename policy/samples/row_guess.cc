#include "policy/samples/row_guess.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "protocol/page.h"

namespace sluice::policy {
namespace {
constexpr uint64_t kAround = 64 << 10;      // bytes that one touch maps, aligned
constexpr uint64_t kMostHeader = 64 << 10;  // bytes
constexpr uint64_t kHeaderStep = 64;        // headers of arrays are padded to a multiple of this

// Row i is at [base + i * stride, + length). The stride may be less than the length: rows that were
// read together with what follows them.
struct Rows {
  uint64_t base = 0, stride = 0, length = 0;
  bool operator==(const Rows&) const = default;
};

bool fits(const Rows& rows, uint64_t size, uint64_t index) {
  return index <= (size - std::min(size, rows.base)) / rows.stride &&
         rows.base + index * rows.stride < size;
}

Extent extent_of(const Rows& rows, uint64_t size, uint64_t index, FileId file) {
  if (!fits(rows, size, index)) return {};
  const uint64_t begin = rows.base + index * rows.stride;
  return {begin, static_cast<uint32_t>(std::min(rows.length, size - begin)), file};
}

// The part may also contain a header that was read right before the row.
bool has_whole(const Observation& seen, const Extent& row) {
  return std::any_of(seen.parts.begin(), seen.parts.end(),
                     [&row](const Extent& part) { return contains(part, row); });
}

// The row is in one part, which exceeds it on each side by no more than one touch maps.
bool has_about(const Observation& seen, const Extent& row) {
  return std::any_of(seen.parts.begin(), seen.parts.end(), [&row](const Extent& part) {
    const uint64_t begin = row.offset / kAround * kAround;
    const uint64_t end = (row.offset + row.length + kAround - 1) / kAround * kAround;
    return contains(part, row) && part.offset >= begin && part.offset + part.length <= end;
  });
}

template <typename Has>
bool explains(const Rows& rows, uint64_t size, FileId file, std::span<const Observation> seen,
              Has has) {
  return std::all_of(seen.begin(), seen.end(), [&](const Observation& one) {
    const Extent row = extent_of(rows, size, one.index, file);
    return row.length != 0 && has(one, row);
  });
}

uint64_t bytes_of(const Observation& seen) {
  uint64_t bytes = 0;
  for (const Extent& part : seen.parts) bytes += part.length;
  return bytes;
}

// Each pair of equally long parts of two samples is a hypothesis.
std::vector<Rows> exact_rows(uint64_t size, FileId file, std::span<const Observation> seen) {
  std::vector<Rows> found;
  // Of the two samples with the fewest bytes read: the first one of a process reads headers, too.
  std::vector<const Observation*> least;
  for (const Observation& one : seen) least.push_back(&one);
  std::partial_sort(
      least.begin(), least.begin() + 2, least.end(),
      [](const Observation* a, const Observation* b) { return bytes_of(*a) < bytes_of(*b); });
  const bool swapped = least[0]->index > least[1]->index;
  const Observation& low = *least[swapped ? 1 : 0];
  const Observation& high = *least[swapped ? 0 : 1];
  for (const Extent& a : low.parts) {
    for (const Extent& b : high.parts) {
      const uint64_t rows_between = high.index - low.index;
      if (a.length != b.length || b.offset <= a.offset) continue;
      const uint64_t stride = (b.offset - a.offset) / rows_between;
      if (stride * rows_between != b.offset - a.offset || stride * low.index > a.offset) continue;
      const Rows rows{a.offset - stride * low.index, stride, a.length};
      if (std::find(found.begin(), found.end(), rows) != found.end()) continue;
      if (!explains(rows, size, file, seen, has_whole)) continue;
      found.push_back(rows);
      if (found.size() > kMostRecordsEach) return {};
    }
  }
  return found;
}

bool seen_by_pages(const Observation& seen, uint64_t size) {
  return std::all_of(seen.parts.begin(), seen.parts.end(), [size](const Extent& part) {
    const uint64_t end = part.offset + part.length;
    return part.offset % kPage == 0 && (end % kPage == 0 || end == size);
  });
}

std::vector<Rows> whole_file(uint64_t size, FileId file, uint64_t samples,
                             std::span<const Observation> seen) {
  if (!std::all_of(seen.begin(), seen.end(),
                   [size](const Observation& one) { return seen_by_pages(one, size); })) {
    return {};
  }
  // The header is what whole rows leave over. One that is padded as headers of arrays are is
  // preferred.
  for (const uint64_t step : {kHeaderStep, uint64_t{1}}) {
    for (uint64_t header = size % samples; header <= kMostHeader && header < size;
         header += samples) {
      const uint64_t stride = (size - header) / samples;
      if (header % step != 0 || stride == 0) continue;
      const Rows rows{header, stride, stride};
      if (stride <= UINT32_MAX && explains(rows, size, file, seen, has_about)) return {rows};
    }
  }
  return {};
}

std::string name_of(const std::vector<Rows>& found) {
  std::string name;
  for (const Rows& rows : found) {
    name += (name.empty() ? "" : ", ") + std::to_string(rows.length) + " bytes at " +
            std::to_string(rows.base) + " + i * " + std::to_string(rows.stride);
  }
  return name;
}

// Each sample once, by index, without parts that more than half of the samples read: headers.
std::vector<Observation> distinct_of(uint64_t samples, std::span<const Observation> seen) {
  std::map<uint64_t, const Observation*> by_index;
  for (const Observation& one : seen) {
    if (one.index < samples) by_index.emplace(one.index, &one);
  }
  std::map<std::pair<uint64_t, uint32_t>, size_t> times;
  for (const auto& [index, one] : by_index) {
    for (const Extent& part : one->parts) ++times[{part.offset, part.length}];
  }
  std::vector<Observation> distinct;
  for (const auto& [index, one] : by_index) {
    Observation own{index, {}};
    for (const Extent& part : one->parts) {
      if (times[{part.offset, part.length}] * 2 <= by_index.size()) own.parts.push_back(part);
    }
    if (!own.parts.empty()) distinct.push_back(std::move(own));
  }
  return distinct;
}

}  // namespace

Guessing guess_rows(uint64_t size, FileId file, uint64_t samples,
                    std::span<const Observation> seen) {
  const std::vector<Observation> distinct = distinct_of(samples, seen);
  Guessing result;
  if (samples == 0 || samples > kMostGuessed) return result;
  if (distinct.size() < kEnoughSeen) {
    result.state = Guessing::State::kWait;
    return result;
  }
  // By pages first: the pages of rows that are about whole pages look like rows themselves.
  std::vector<Rows> found = whole_file(size, file, samples, distinct);
  const bool by_pages = !found.empty();
  if (found.empty()) found = exact_rows(size, file, distinct);
  if (found.empty()) return result;
  uint64_t header = found.front().base;
  for (const Rows& rows : found) header = std::min(header, rows.base);
  header = std::min(header, kMostHeader);
  std::vector<Extent> extents;
  extents.reserve(samples * found.size());
  for (uint64_t i = 0; i < samples; ++i) {
    bool whole = true;
    for (const Rows& rows : found) {
      extents.push_back(extent_of(rows, size, i, file));
      whole &= extents.back().length != 0;
    }
    if (!whole)
      std::fill(extents.end() - static_cast<ptrdiff_t>(found.size()), extents.end(), Extent{});
  }
  result.guess.emplace(name_of(found), found.size(), std::move(extents),
                       GuessMatch{.exact = false, .finer = by_pages, .header = header});
  result.state = Guessing::State::kGuessed;
  return result;
}

}  // namespace sluice::policy
