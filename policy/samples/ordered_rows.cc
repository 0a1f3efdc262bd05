#include "policy/samples/ordered_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/page.h"

namespace sluice::policy {
namespace {

// A bracket exceeds the row by no more than a fourth of it, or a page: so much is read for nothing
// at most.
constexpr uint64_t kSlackShare = 4;

struct Row {
  uint64_t index = 0;
  Extent place;
};

uint64_t slack_of(uint64_t length) { return std::max(length / kSlackShare, kPage); }

// Rows whose part has another length, as one that was read together with an index beside it, are
// left out, unless they are more than this share.
constexpr size_t kOtherShare = 4;

// Each sample's largest part, by index.
std::vector<Row> rows_of(uint64_t samples, std::span<const Observation> seen) {
  std::map<uint64_t, Extent> rows;
  for (const Observation& one : seen) {
    if (one.index >= samples || one.parts.empty()) continue;
    rows[one.index] =
        *std::max_element(one.parts.begin(), one.parts.end(),
                          [](const Extent& a, const Extent& b) { return a.length < b.length; });
  }
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto& [index, place] : rows) sorted.push_back({index, place});
  return sorted;
}

// The rows of the most frequent length; none if too many have another.
std::vector<Row> of_one_length(std::vector<Row> rows) {
  std::map<uint32_t, size_t> times;
  for (const Row& row : rows) ++times[row.place.length];
  const auto most = std::max_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == times.end() || most->second < rows.size() - rows.size() / kOtherShare) return {};
  std::erase_if(rows, [&](const Row& row) { return row.place.length != most->first; });
  return rows;
}

// What lies between two rows besides the rows between them, in bytes. REQUIRES: they are in one
// file, in order.
uint64_t between(const Row& low, const Row& high) {
  return high.place.offset - low.place.offset - (high.index - low.index) * low.place.length;
}

// The rows, which are of one size, ascend in each file with room for those between, and no file is
// returned to.
bool in_order(std::span<const Row> rows) {
  std::set<uint32_t> left;
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row &low = rows[i - 1], &high = rows[i];
    if (high.place.file.is_whole()) return false;
    if (high.place.file != low.place.file) {
      left.insert(number(low.place.file.followed()));
      if (left.contains(number(high.place.file.followed()))) return false;
      continue;
    }
    if (high.place.offset <= low.place.offset) return false;
    const uint64_t rows_between = high.index - low.index;
    if ((high.place.offset - low.place.offset) / rows_between < low.place.length) return false;
  }
  return true;
}

}  // namespace

Guessing guess_ordered_rows(uint64_t samples, std::span<const Observation> seen) {
  Guessing result;
  if (samples == 0 || samples > kMostGuessed) return result;
  std::vector<Row> rows = rows_of(samples, seen);
  if (rows.size() < kEnoughSeen) {
    result.state = Guessing::State::kWait;
    return result;
  }
  rows = of_one_length(std::move(rows));
  if (rows.empty() || !in_order(rows)) return result;
  const uint64_t length = rows.front().place.length;
  std::vector<Extent> extents(samples);
  uint64_t known = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& low = rows[i];
    extents[low.index] = low.place;
    ++known;
    if (i + 1 == rows.size() || rows[i + 1].place.file != low.place.file) continue;
    const uint64_t more = between(low, rows[i + 1]);
    if (more > slack_of(length) || length + more > UINT32_MAX) continue;
    for (uint64_t index = low.index + 1; index < rows[i + 1].index; ++index, ++known) {
      extents[index] = {low.place.offset + (index - low.index) * length,
                        static_cast<uint32_t>(length + more), low.place.file};
    }
  }
  if (known == rows.size()) {
    result.state = Guessing::State::kWait;
    return result;
  }
  std::string name = "rows of " + std::to_string(length) + " bytes in the samples' order";
  result.guess.emplace(std::move(name), 1, std::move(extents),
                       GuessMatch{.exact = false, .wider = true, .partial = known < samples});
  result.state = Guessing::State::kGuessed;
  return result;
}

}  // namespace sluice::policy
