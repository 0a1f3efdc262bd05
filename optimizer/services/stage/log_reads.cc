#include "optimizer/services/stage/log_reads.h"

#include <algorithm>
#include <utility>

namespace sluice::optimizer {

using policy::CopyTable;
using policy::FollowedJob;
using policy::LogPlan;
using policy::LogRange;
namespace {

constexpr uint32_t kReadAhead = 12;  // chunks
// Bytes of all chunks that are being read or wait for fetches; the share is of the memory for
// copies, beside which they are.
constexpr uint64_t kLeastReads = 16 << 20, kMostReads = 64 << 20, kReadsShare = 4;
constexpr unsigned kReaders = 4;

template <typename Many, typename Member>
uint64_t total(const Many& many, Member member) {
  uint64_t sum = 0;
  for (const auto& one : many) sum += one.*member;
  return sum;
}

}  // namespace

LogReads::LogReads(const Plans* plans) : plans_(plans), readers_(kReaders, kReaders) {}

void LogReads::clear() {
  for (const OpenRead& open : reads_) open.read->cancel();
  reads_.clear();
}

// The read of a chunk that is about to be read as a whole, which may have begun. nullptr: fewer
// than two of its members are wanted, or not together, or there is no room: reads `ahead` do not
// displace others.
LogReads::OpenRead* LogReads::open_chunk(const Log& log, uint32_t chunk, bool ahead) {
  const auto open = std::ranges::find(reads_, chunk, &OpenRead::chunk);
  if (open != reads_.end()) return &*open;
  const FollowedJob& job = log.job;
  const uint32_t current = job.plan().current();
  if (!job.is_in_order(chunk)) return nullptr;
  std::vector<SampleId> wanted;
  for (const SampleId member : job.plan().log(current).members(chunk)) {
    if (!job.is_ordered(member) || job.is_read(member)) continue;
    if (!log.contents.find(member, current)) continue;
    if (plans_->stage.table().has(job.file_of(member)) == CopyTable::Has::kStaged) continue;
    wanted.push_back(member);
  }
  if (wanted.size() < 2) return nullptr;
  std::vector<LogRange> ranges = job.plan().reads(wanted).ranges;
  const uint64_t bytes = total(ranges, &LogRange::length);
  const uint64_t most =
      std::clamp(plans_->stage.room().budget() / kReadsShare, kLeastReads, kMostReads);
  if (bytes > most) return nullptr;
  while (bytes + total(reads_, &OpenRead::bytes) > most) {
    if (ahead) return nullptr;
    reads_.pop_front();
  }
  ++chunk_reads_;
  auto read = std::make_shared<LogRead>(log.files, current, std::move(ranges));
  // Reads of a log that was released, and hangs, hold up none of another.
  readers_.run(reinterpret_cast<uintptr_t>(log.files.get()), [read] { read->prepare(); });
  reads_.push_back({chunk, bytes, std::move(wanted), std::move(read)});
  return &reads_.back();
}

// What the job has read itself is not fetched any more.
void LogReads::close_read(const Log& log) {
  for (OpenRead& open : reads_) {
    std::erase_if(open.left, [&](SampleId member) { return log.job.is_read(member); });
  }
  std::erase_if(reads_, [](const OpenRead& one) { return one.left.empty(); });
}

// Workers are apart, and each that comes to what has not been requested reads it by itself.
void LogReads::read_ahead(const Log& log, uint32_t chunk) {
  for (uint32_t next = chunk + 1; next <= chunk + kReadAhead; ++next) {
    open_chunk(log, next, true);
  }
}

std::shared_ptr<LogRead> LogReads::read_of(const Log& log, SampleId sample) {
  const LogPlan& plan = log.job.plan();
  const uint32_t chunk = plan.log(plan.current()).chunk_of(sample);
  std::shared_ptr<LogRead> read;
  if (OpenRead* open = open_chunk(log, chunk, false);
      open != nullptr && std::erase(open->left, sample) != 0) {
    read = open->read;
    close_read(log);
    read_ahead(log, chunk);
  } else {
    ++lone_reads_;
    read = std::make_shared<LogRead>(log.files, plan.current(), plan.reads({&sample, 1}).ranges);
  }
  return read;
}

}  // namespace sluice::optimizer
