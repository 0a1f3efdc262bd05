#include "policy/chunks/log_plan.h"

#include <algorithm>

namespace sluice::policy {
namespace {

// Sorts, and joins what is not further apart than `gap`.
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

}  // namespace

LogPlan::LogPlan(std::span<const uint32_t> bytes, uint32_t chunk_samples, uint64_t budget)
    : bytes_(bytes), chunk_samples_(chunk_samples), budget_(budget) {}

bool LogPlan::begin_epoch(std::span<const SampleId> order, std::span<const SampleId> next) {
  const bool turned = ahead_;
  if (turned) {
    LogIndex& old = logs_[current_];
    for (uint32_t chunk = 0; chunk < old.chunks(); ++chunk) {  // what the epoch did not read
      for (const SampleId sample : old.members(chunk)) {
        if (old.is_written(sample)) remove(&old, sample, nullptr);
      }
    }
    old = LogIndex();
    current_ ^= 1;
  }
  if (logs_[current_].samples() == 0) logs_[current_] = LogIndex(order, bytes_, chunk_samples_);
  ahead_ = !next.empty();
  if (ahead_) logs_[current_ ^ 1] = LogIndex(next, bytes_, chunk_samples_);
  return turned;
}

LogPlan::Reads LogPlan::reads(std::span<const SampleId> batch) const {
  Reads reads;
  const LogIndex& log = logs_[current_];
  for (const SampleId sample : batch) {
    const std::optional<LogRange> place = log.place(sample);
    if (!place || !log.is_written(sample)) {
      reads.remote.push_back(sample);
      continue;
    }
    const uint64_t from = place->offset / LogIndex::kBlock * LogIndex::kBlock;
    const uint64_t end = place->offset + place->length + LogIndex::kBlock - 1;
    reads.ranges.push_back({from, end / LogIndex::kBlock * LogIndex::kBlock - from});
  }
  join(&reads.ranges, kGap);
  return reads;
}

// A sample that lies beyond the budget would be read too late in its epoch to be worth the room of
// one that is read earlier (Algorithm 1, line 13, where the sample's end counts).
bool LogPlan::write(LogIndex* log, SampleId sample) {
  const std::optional<LogRange> place = log->place(sample);
  if (!place || log->is_written(sample) || place->offset + place->length > budget_) return false;
  const uint64_t gained = log->own_blocks(sample).length;
  if (used_ + gained > budget_) return false;
  used_ += gained;
  log->set_written(sample, true);
  return true;
}

// REQUIRES: it is written.
void LogPlan::remove(LogIndex* log, SampleId sample, std::vector<LogRange>* released) {
  log->set_written(sample, false);
  const LogRange blocks = log->own_blocks(sample);
  used_ -= blocks.length;
  if (released != nullptr && blocks.length != 0) released->push_back(blocks);
}

LogPlan::Moves LogPlan::consumed(std::span<const SampleId> batch) {
  Moves moves;
  LogIndex& log = logs_[current_];
  LogIndex& target = ahead_ ? logs_[current_ ^ 1] : log;
  moves.to_current = !ahead_;
  if (ahead_) {
    for (const SampleId sample : batch) {
      if (log.is_written(sample)) remove(&log, sample, &moves.release);
    }
    join(&moves.release, 0);
  }
  for (const SampleId sample : batch) {
    if (write(&target, sample)) moves.writes.push_back({sample, target.place(sample)->offset});
  }
  std::ranges::sort(moves.writes, {}, &Write::offset);
  return moves;
}

void LogPlan::drop(SampleId sample) {
  for (LogIndex& log : logs_) {
    if (log.is_written(sample)) remove(&log, sample, nullptr);
  }
}

}  // namespace sluice::policy
