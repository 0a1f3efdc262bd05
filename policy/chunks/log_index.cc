#include "policy/chunks/log_index.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {
namespace {

constexpr uint64_t kBlock = LogIndex::kBlock;
constexpr uint64_t kMostRoom = UINT32_MAX;  // of a chunk: places in it are of four bytes

uint64_t rounded_down(uint64_t bytes) { return bytes / kBlock * kBlock; }
uint64_t rounded_up(uint64_t bytes) { return rounded_down(bytes + kBlock - 1); }

}  // namespace

LogRange whole_blocks(LogRange range) {
  constexpr uint64_t kBlock = LogIndex::kBlock;
  const uint64_t from = range.offset / kBlock * kBlock;
  return {from, (range.offset + range.length + kBlock - 1) / kBlock * kBlock - from};
}

void join(std::vector<LogRange>* ranges, uint64_t gap) {
  std::ranges::sort(*ranges, {}, &LogRange::offset);
  size_t last = 0;
  for (size_t at = 1; at < ranges->size(); ++at) {
    LogRange& before = (*ranges)[last];
    const LogRange& range = (*ranges)[at];
    const uint64_t end = before.offset + before.length;
    if (range.offset <= end + gap) {
      before.length = std::max(end, range.offset + range.length) - before.offset;
    } else {
      (*ranges)[++last] = range;
    }
  }
  if (!ranges->empty()) ranges->resize(last + 1);
}

LogIndex::LogIndex(std::span<const SampleId> order, std::span<const uint32_t> bytes, Layout layout)
    : bytes_(bytes), layout_(layout), position_(bytes.size(), kNowhere) {
  order_.reserve(order.size());
  chunks_.reserve(order.size() / layout.chunk_samples + 1);
  uint64_t all = 0;
  for (const SampleId sample : order) {
    if (has(sample)) continue;
    const bool known = bytes[sample] != 0;
    all += known ? bytes[sample] : layout.usual - layout.usual / kUnknownLess;
    if (all > layout.most) break;
    if (chunks_.empty() || chunks_.back().members == layout.chunk_samples) begin_chunk();
    length_ += known ? bytes[sample] : kUnknownRoom * layout.usual;
    add(sample);
  }
  length_ = rounded_up(length_);
  ordered_ = chunks();
}

void LogIndex::begin_chunk() {
  length_ = rounded_up(length_);
  const size_t begin = chunks_.size() * layout_.chunk_samples;
  order_.resize(begin);
  within_.resize(begin);
  written_.resize(begin);
  chunks_.push_back({.start = length_});
}

void LogIndex::add(SampleId sample) {
  ++chunks_.back().members;
  ++samples_;
  position_[sample] = static_cast<uint32_t>(order_.size());
  order_.push_back(sample);
  within_.push_back(0);
  written_.push_back(false);
}

void LogIndex::append(SampleId sample) {
  const uint32_t last = chunks() - 1;  // if there is one
  if (chunks() == ordered_ || chunks_[last].members == layout_.chunk_samples ||
      filled(last) + bytes_[sample] > kMostRoom) {
    begin_chunk();
  }
  add(sample);
  place_behind(sample);
}

// REQUIRES: it has no place, and its chunk has room.
void LogIndex::place_behind(SampleId sample) {
  const uint32_t chunk = chunk_of(sample);
  const uint32_t at = position_[sample], to = first(chunk) + chunks_[chunk].placed;
  std::swap(order_[at], order_[to]);
  position_[order_[at]] = at;
  position_[sample] = to;
  within_[to] = static_cast<uint32_t>(filled(chunk));
  ++chunks_[chunk].placed;
  length_ = std::max(length_, rounded_up(end(to)));
}

uint64_t LogIndex::filled(uint32_t chunk) const {
  const Chunk& of = chunks_[chunk];
  return of.placed == 0 ? 0 : end(first(chunk) + of.placed - 1) - of.start;
}

// Behind the last one there is nothing.
uint64_t LogIndex::room(uint32_t chunk) const {
  if (chunk + 1 == chunks()) return kMostRoom;
  return std::min(chunks_[chunk + 1].start - chunks_[chunk].start, kMostRoom);
}

void LogIndex::put(SampleId sample) {
  if (is_placed(position_[sample])) return;
  const uint32_t chunk = chunk_of(sample);
  if (filled(chunk) + bytes_[sample] <= room(chunk)) {
    place_behind(sample);
    return;
  }
  const uint32_t at = position_[sample], last = first(chunk) + --chunks_[chunk].members;
  std::swap(order_[at], order_[last]);
  position_[order_[at]] = at;
  --samples_;
  append(sample);
}

std::span<const SampleId> LogIndex::members(uint32_t chunk) const {
  return std::span(order_).subspan(first(chunk), chunks_[chunk].members);
}

std::optional<LogRange> LogIndex::place(SampleId sample) const {
  if (!has(sample) || !is_placed(position_[sample])) return std::nullopt;
  return LogRange{offset(position_[sample]), bytes_[sample]};
}

// The blocks at both ends may hold parts of its neighbours, where samples are small of several.
LogRange LogIndex::own_blocks(SampleId sample) const {
  if (bytes_[sample] == 0) return {};
  const uint32_t at = position_[sample];
  const uint32_t begin = first(chunk_of(sample));
  const uint32_t behind = begin + chunks_[chunk_of(sample)].placed;
  const auto counts = [this](uint32_t other) {
    return written_[other] && bytes_[order_[other]] != 0;
  };
  uint64_t from = rounded_down(offset(at)), to = rounded_up(end(at));
  uint32_t before = at;
  while (before > begin && end(before - 1) > from && !counts(before - 1)) --before;
  if (before > begin && end(before - 1) > from) from += kBlock;
  uint32_t after = at + 1;
  while (after < behind && offset(after) < to && !counts(after)) ++after;
  if (after < behind && offset(after) < to) to -= kBlock;
  return to > from ? LogRange{from, to - from} : LogRange{};
}

uint64_t LogIndex::footprint() const {
  return sizeof *this + order_.capacity() * sizeof(SampleId) +
         (position_.capacity() + within_.capacity()) * sizeof(uint32_t) +
         chunks_.capacity() * sizeof(Chunk) + written_.capacity() / 8;
}

}  // namespace sluice::policy
