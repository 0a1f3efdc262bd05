// Reads a trace (protocol/trace.h). The file is untrusted: every field is checked, and the memory
// used depends only on the file's length.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/files.h"
#include "cli/program.h"
#include "cli/simulate_workload.h"
#include "cli/text.h"
#include "protocol/trace.h"

namespace sluice::cli {
namespace {

using protocol::TraceHeader;
using protocol::TraceRecord;

constexpr uint64_t kMostRecords = 100'000'000;  // 1.6 GB of accesses
constexpr size_t kRecordsAtOnce = 64 << 10;

class Recorded : public Workload {
 public:
  uint32_t samples() const override { return samples_; }
  uint64_t dataset_bytes() const override { return total_; }
  unsigned jobs() const override { return jobs_; }
  unsigned rounds() const override { return static_cast<unsigned>(starts_.size()); }
  std::span<const Access> round(unsigned index) override {
    const size_t end = index + 1 < starts_.size() ? starts_[index + 1] : accesses_.size();
    return std::span(accesses_).subspan(starts_[index], end - starts_[index]);
  }
  std::string description() const override {
    return fmt::format("{} samples, {}, {} accesses in {} epoch{}, {} job{}{}", samples_,
                       format_bytes(static_cast<double>(total_)), accesses_.size(), rounds(),
                       rounds() == 1 ? "" : "s", jobs_, jobs_ == 1 ? "" : "s",
                       cut_ ? "; the last record is cut short and left out" : "");
  }

  void reserve(uint64_t records) { accesses_.reserve(records); }
  void set_cut() { cut_ = true; }

  // Returns nullptr, or the record's problem.
  const char* add(const TraceRecord& record) {
    if (record.bytes > protocol::kTraceMaxBytes) return "its sample is larger than 64 GiB";
    if (record.job >= protocol::kTraceMaxJobs) return "its job's number is 1024 or more";
    if (record.sample == UINT32_MAX) return "its sample has no number";
    if (record.job >= epochs_.size()) epochs_.resize(record.job + 1, kNoEpoch);
    int64_t& epoch = epochs_[record.job];
    if (record.epoch < epoch) return "its epoch comes before that of the job's record before";
    const bool begins = record.epoch > epoch;
    if (epoch == kNoEpoch) ++jobs_;
    epoch = record.epoch;
    // A round is an epoch of the job that came first.
    if (accesses_.empty()) first_job_ = record.job;
    if (begins && record.job == first_job_) starts_.push_back(accesses_.size());
    accesses_.push_back({record.bytes, record.sample, static_cast<uint16_t>(record.job), begins});
    return nullptr;
  }

  void finish() {
    std::vector<uint32_t> numbers;
    numbers.reserve(accesses_.size());
    for (const Access& access : accesses_) numbers.push_back(access.sample);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    samples_ = static_cast<uint32_t>(numbers.size());
    std::vector<uint64_t> sizes(samples_);  // the latest
    for (Access& access : accesses_) {
      access.sample = static_cast<uint32_t>(
          std::lower_bound(numbers.begin(), numbers.end(), access.sample) - numbers.begin());
      sizes[access.sample] = access.bytes;
    }
    static_assert(kMostRecords * protocol::kTraceMaxBytes / kMostRecords ==
                  protocol::kTraceMaxBytes);  // no sum of sizes overflows
    for (const uint64_t size : sizes) total_ += size;
  }

 private:
  static constexpr int64_t kNoEpoch = -1;

  std::vector<Access> accesses_;
  std::vector<size_t> starts_;   // of the rounds
  std::vector<int64_t> epochs_;  // by job
  uint32_t first_job_ = 0;
  unsigned jobs_ = 0;
  uint32_t samples_ = 0;
  uint64_t total_ = 0;
  bool cut_ = false;
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw SimulateFailure(kExitUsage, fmt::format("--trace {}: {}", path, what));
}

}  // namespace

std::unique_ptr<Workload> read_trace(const std::string& path) {
  off_t length = 0;
  std::string problem;
  const UniqueFd fd = open_regular(path, &length, &problem);
  if (!fd) fail(path, problem);
  TraceHeader header{};
  const auto read = [&](void* to, size_t bytes) {
    const ssize_t got = read_fully(fd.get(), to, bytes);
    if (got < 0) fail(path, strerror(errno));
    return static_cast<size_t>(got);
  };
  if (read(&header, sizeof header) != sizeof header || header.magic != protocol::kTraceMagic) {
    fail(path, "not a trace");
  }
  if (header.version != protocol::kTraceVersion || header.record_size != sizeof(TraceRecord)) {
    fail(path, fmt::format("a trace of version {}; this program reads version {}", header.version,
                           protocol::kTraceVersion));
  }
  const uint64_t expected = static_cast<uint64_t>(length) / sizeof(TraceRecord);
  if (expected > kMostRecords) {
    fail(path, fmt::format("more than {} records do not fit into memory", kMostRecords));
  }
  auto trace = std::make_unique<Recorded>();
  trace->reserve(expected);
  std::vector<TraceRecord> records(kRecordsAtOnce);
  for (uint64_t number = 0;;) {
    const size_t wanted = records.size() * sizeof(TraceRecord);
    const size_t got = read(records.data(), wanted);
    for (size_t at = 0; at < got / sizeof(TraceRecord); ++at, ++number) {
      // The file may have grown in the meantime.
      if (number >= kMostRecords) fail(path, "it grows while it is read");
      const char* bad = trace->add(records[at]);
      if (bad != nullptr) fail(path, fmt::format("record {}: {}", number, bad));
    }
    if (got == wanted) continue;
    if (got % sizeof(TraceRecord) != 0) trace->set_cut();
    if (number == 0) fail(path, "it has no records");
    break;
  }
  trace->finish();
  return trace;
}

}  // namespace sluice::cli
