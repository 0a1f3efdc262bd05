#include "policy/chunks/log_index.h"

#include <algorithm>

namespace sluice::policy {
namespace {

constexpr uint64_t kBlock = LogIndex::kBlock;

uint64_t rounded_down(uint64_t bytes) { return bytes / kBlock * kBlock; }
uint64_t rounded_up(uint64_t bytes) { return rounded_down(bytes + kBlock - 1); }

}  // namespace

LogIndex::LogIndex(std::span<const SampleId> order, std::span<const uint32_t> bytes,
                   uint32_t chunk_samples)
    : bytes_(bytes), chunk_samples_(chunk_samples), position_(bytes.size(), kNowhere) {
  order_.reserve(order.size());
  within_.reserve(order.size());
  starts_.reserve(order.size() / chunk_samples + 1);
  uint64_t at = 0;
  for (const SampleId sample : order) {
    if (position_[sample] != kNowhere) continue;
    if (order_.size() % chunk_samples == 0) {
      at = rounded_up(at);
      starts_.push_back(at);
    }
    position_[sample] = static_cast<uint32_t>(order_.size());
    order_.push_back(sample);
    within_.push_back(static_cast<uint32_t>(at - starts_.back()));
    at += bytes[sample];
  }
  length_ = rounded_up(at);
  written_.resize(order_.size());
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
