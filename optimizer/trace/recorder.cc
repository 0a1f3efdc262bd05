#include "optimizer/trace/recorder.h"

#include <algorithm>

namespace sluice::optimizer {

using policy::DatasetId;
using policy::kNoSession;
namespace {

constexpr uint64_t kMostSamples = UINT32_MAX;  // the greatest number means none
constexpr size_t kMaxDatasets = 1024;

}  // namespace

// A job that began without an order becomes the job of the first order of its dataset. Re-keying a
// map's node does not move it, so the pointers in Open stay valid.
Recorder::Job* Recorder::job_of(const Origin& origin) {
  const auto key = std::pair(origin.owner, origin.dataset);
  if (const auto known = jobs_.find(key); known != jobs_.end()) return &known->second;
  if (const auto unordered = jobs_.find({kNoSession, origin.dataset}); unordered != jobs_.end()) {
    auto entry = jobs_.extract(unordered);
    entry.key() = key;
    return &jobs_.insert(std::move(entry)).position->second;
  }
  if (next_job_ >= protocol::kTraceMaxJobs) {
    problem_ = "a trace has room for 1024 jobs";
    return nullptr;
  }
  Job& job = jobs_[key];
  job.number = next_job_++;
  return &job;
}

std::optional<uint64_t> Recorder::base_of(const Origin& origin) {
  const auto key = std::pair(std::string(origin.name), origin.samples);
  if (const auto known = base_.find(key); known != base_.end()) return known->second;
  if (base_.size() >= kMaxDatasets || origin.samples > kMostSamples - next_base_) {
    problem_ = "a trace has room for 4294967295 samples";
    return std::nullopt;
  }
  const uint64_t base = next_base_;
  next_base_ += origin.samples;
  base_[key] = base;
  return base;
}

uint32_t Recorder::epoch_of(Job& job, uint64_t index, const Origin& origin) {
  if (origin.epoch) {
    job.counted = *origin.epoch;
    return *origin.epoch;
  }
  if (index >= kMaxCounted) return job.counted;
  if (index < job.seen.size() && job.seen[index]) {
    ++job.counted;
    job.seen.assign(job.seen.size(), false);
  }
  if (index >= job.seen.size()) job.seen.resize(index + 1);
  job.seen[index] = true;
  return job.counted;
}

bool Recorder::begin(uint64_t reader, uint64_t index, const Origin& origin) {
  if (index >= origin.samples) return true;  // invalid; counted elsewhere
  const auto base = base_of(origin);
  Job* job = base ? job_of(origin) : nullptr;
  if (job == nullptr) return false;
  if (open_.size() >= kMaxReaders) open_.clear();
  std::vector<Open>& open = open_[reader];
  if (open.size() >= kMaxOpen) open.clear();  // the events of their ends were lost
  const auto sample = static_cast<uint32_t>(*base + index);
  open.push_back({origin.dataset, epoch_of(*job, index, origin), sample, index, job});
  return true;
}

std::optional<protocol::TraceRecord> Recorder::end(uint64_t reader, DatasetId dataset,
                                                   uint64_t index, uint64_t bytes) {
  const auto at = open_.find(reader);
  if (at == open_.end()) return std::nullopt;
  std::vector<Open>& all = at->second;
  const auto open = std::find_if(all.rbegin(), all.rend(), [&](const Open& one) {
    return one.dataset == dataset && one.index == index;
  });
  if (open == all.rend()) return std::nullopt;
  // Each reader's events arrive separately: a late one may come after the next epoch has begun.
  Job& job = *open->job;
  job.written = std::max(job.written, open->epoch);
  const protocol::TraceRecord record{std::min(bytes, protocol::kTraceMaxBytes), job.written,
                                     job.number, open->sample, 0};
  all.erase(std::next(open).base());
  if (all.empty()) open_.erase(at);
  return record;
}

void Recorder::remove_process(uint32_t pid) {
  std::erase_if(open_, [pid](const auto& entry) { return entry.first >> 32 == pid; });
}

}  // namespace sluice::optimizer
