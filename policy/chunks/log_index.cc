#include "policy/chunks/log_index.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kBlock = LogIndex::kBlock;

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

LogIndex::LogIndex(std::span<const SampleId> order, std::span<const uint32_t> bytes,
                   uint32_t chunk_samples)
    : bytes_(bytes), chunk_samples_(chunk_samples), position_(bytes.size(), kNowhere) {
  order_.reserve(order.size());
  within_.reserve(order.size());
  starts_.reserve(order.size() / chunk_samples + 1);
  for (const SampleId sample : order) {
    if (!has(sample)) append(sample);
  }
}

void LogIndex::append(SampleId sample) {
  const uint32_t position = samples();
  const bool begins_chunk = position % chunk_samples_ == 0;
  if (begins_chunk) starts_.push_back(length_);
  const uint64_t at = begins_chunk ? length_ : end(position - 1);
  position_[sample] = position;
  order_.push_back(sample);
  within_.push_back(static_cast<uint32_t>(at - starts_.back()));
  length_ = rounded_up(at + bytes_[sample]);
  written_.push_back(false);
}

std::span<const SampleId> LogIndex::members(uint32_t chunk) const {
  const size_t first = size_t{chunk} * chunk_samples_;
  return std::span(order_).subspan(first, std::min<size_t>(chunk_samples_, order_.size() - first));
}

LogRange LogIndex::range(uint32_t chunk) const {
  const uint64_t end = chunk + 1 < starts_.size() ? starts_[chunk + 1] : length_;
  return {starts_[chunk], end - starts_[chunk]};
}

uint64_t LogIndex::length() const { return length_; }

std::optional<LogRange> LogIndex::place(SampleId sample) const {
  if (!has(sample)) return std::nullopt;
  return LogRange{offset(position_[sample]), bytes_[sample]};
}

// The blocks at both ends may hold parts of its neighbours, where samples are small of several.
LogRange LogIndex::own_blocks(SampleId sample) const {
  if (bytes_[sample] == 0) return {};
  const uint32_t at = position_[sample];
  const uint32_t first = at / chunk_samples_ * chunk_samples_;
  const uint32_t behind = std::min(first + chunk_samples_, samples());
  const auto counts = [this](uint32_t other) {
    return written_[other] && bytes_[order_[other]] != 0;
  };
  uint64_t from = rounded_down(offset(at)), to = rounded_up(end(at));
  uint32_t before = at;
  while (before > first && end(before - 1) > from && !counts(before - 1)) --before;
  if (before > first && end(before - 1) > from) from += kBlock;
  uint32_t after = at + 1;
  while (after < behind && offset(after) < to && !counts(after)) ++after;
  if (after < behind && offset(after) < to) to -= kBlock;
  return to > from ? LogRange{from, to - from} : LogRange{};
}

uint64_t LogIndex::footprint() const {
  return sizeof *this + order_.capacity() * sizeof(SampleId) +
         (position_.capacity() + within_.capacity()) * sizeof(uint32_t) +
         starts_.capacity() * sizeof(uint64_t) + written_.capacity() / 8;
}

}  // namespace sluice::policy
