#include "policy/chunks/log_plan.h"

#include <algorithm>

namespace sluice::policy {

LogPlan::LogPlan(std::span<const uint32_t> bytes, uint64_t chunk, uint64_t budget)
    : bytes_(bytes),
      chunk_(chunk),
      budget_(budget),
      logs_{LogIndex({}, bytes_, {}), LogIndex({}, bytes_, {})} {}

bool LogPlan::begin_epoch(std::span<const SampleId> next) {
  const bool turned = ahead_;
  if (turned) {
    LogIndex& old = logs_[current_];
    for (uint32_t chunk = 0; chunk < old.chunks(); ++chunk) {  // what the epoch did not read
      for (const SampleId sample : old.members(chunk)) {
        if (old.is_written(sample)) remove(&old, sample, nullptr);
      }
    }
    old = LogIndex({}, bytes_, {});
    current_ ^= 1;
  }
  ahead_ = false;
  expect(next);
  return turned;
}

void LogPlan::expect(std::span<const SampleId> next) {
  if (ahead_) return;
  uint64_t all = 0, known = 0;
  for (const SampleId sample : next) {
    all += bytes_[sample];
    known += bytes_[sample] != 0 ? 1 : 0;
  }
  if (known == 0) return;
  ahead_ = true;
  logs_[current_ ^ 1] = laid_out(next, std::max<uint64_t>(all / known, 1));
}

// What lies beyond the budget would be read too late in its epoch to be worth the room of what is
// read earlier (Algorithm 1, line 13, where the sample's end counts).
LogIndex LogPlan::laid_out(std::span<const SampleId> order, uint64_t usual) const {
  const uint64_t samples = std::clamp(chunk_ / usual, kFewest, kMost);
  return {order,
          bytes_,
          {.chunk_samples = static_cast<uint32_t>(samples), .usual = usual, .most = budget_}};
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
    reads.ranges.push_back(whole_blocks(*place));
  }
  join(&reads.ranges, kGap);
  return reads;
}

bool LogPlan::write(LogIndex* log, SampleId sample) {
  if (!log->has(sample) || log->is_written(sample)) return false;
  if (used_ + bytes_[sample] > budget_ + 2 * LogIndex::kBlock) return false;
  log->put(sample);
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

void LogPlan::write_current(std::span<const SampleId> batch, Moves* moves) {
  LogIndex& log = logs_[current_];
  moves->to_current = true;
  for (const SampleId sample : batch) {
    if (!log.has(sample)) {
      if (used_ + bytes_[sample] > budget_) continue;
      if (log.samples() == 0) log = laid_out({}, std::max<uint64_t>(bytes_[sample], 1));
      log.append(sample);
    }
    if (write(&log, sample)) moves->writes.push_back({sample, log.place(sample)->offset});
  }
}

LogPlan::Moves LogPlan::consumed(std::span<const SampleId> batch) {
  Moves moves;
  if (!ahead_) {
    write_current(batch, &moves);
  } else {
    LogIndex& log = logs_[current_];
    LogIndex& next = logs_[current_ ^ 1];
    for (const SampleId sample : batch) {
      if (log.is_written(sample)) remove(&log, sample, &moves.release);
    }
    join(&moves.release, 0);
    for (const SampleId sample : batch) {
      if (write(&next, sample)) moves.writes.push_back({sample, next.place(sample)->offset});
    }
  }
  std::ranges::sort(moves.writes, {}, &Write::offset);
  return moves;
}

bool LogPlan::lacks(SampleId sample) const {
  const LogIndex& log = logs_[ahead_ ? current_ ^ 1 : current_];
  if (log.is_written(sample)) return false;
  return log.has(sample) || !ahead_;
}

LogPlan::Moves LogPlan::returned(std::span<const SampleId> batch) {
  Moves moves;
  write_current(batch, &moves);
  std::ranges::sort(moves.writes, {}, &Write::offset);
  return moves;
}

void LogPlan::drop(SampleId sample) {
  for (LogIndex& log : logs_) {
    if (log.is_written(sample)) remove(&log, sample, nullptr);
  }
}

}  // namespace sluice::policy
