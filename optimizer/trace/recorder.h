// Makes the records of a trace (protocol/trace.h) from begins and ends of samples: assigns jobs,
// epochs and sample numbers. Pure; one thread.
//
// A job of the trace is one order over one dataset: a process that trains and validates is two
// jobs, ranks that read shares of one dataset are one job each, and a loader's workers belong to
// the job of its process in whatever session they are. Each dataset has its own range of sample
// numbers in the trace; datasets of the same name and size share one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/util/ids.h"
#include "protocol/trace.h"

namespace sluice::optimizer {

class Recorder {
 public:
  // Jobs are numbered from `first_job` on.
  explicit Recorder(uint32_t first_job = 0) : next_job_(first_job) {}

  // The dataset of a sample and the order in which it is read, as known when the sample begins.
  struct Origin {
    std::string_view name;
    uint64_t samples = 0;
    policy::DatasetId dataset{};
    policy::SessionId owner{};      // the session that owns the order
    std::optional<uint32_t> epoch;  // that order's current epoch; nullopt: counted by repeats
  };

  // `reader` (a thread: pid << 32 | tid) begins the sample. False if the trace is out of numbers:
  // problem() says of which.
  bool begin(uint64_t reader, uint64_t index, const Origin& origin);
  // The record of a sample of `bytes` bytes that has ended; nullopt if it was not begun.
  std::optional<protocol::TraceRecord> end(uint64_t reader, policy::DatasetId dataset,
                                           uint64_t index, uint64_t bytes);
  void remove_process(uint32_t pid);
  const char* problem() const { return problem_; }

  static constexpr size_t kMaxReaders = 4096;
  static constexpr size_t kMaxOpen = 4096;  // samples begun and not ended by one reader
  // Without an order, repeats of samples from this index on begin no epoch: limits `seen`, which
  // takes a bit for each.
  static constexpr uint64_t kMaxCounted = uint64_t{1} << 28;

 private:
  struct Job {
    uint32_t number = 0;
    uint32_t counted = 0;    // the epoch, as counted by repeats
    uint32_t written = 0;    // the epoch of its latest record
    std::vector<bool> seen;  // by sample, in epoch `counted`
  };
  struct Open {
    policy::DatasetId dataset{};
    uint32_t epoch = 0, sample = 0;
    uint64_t index = 0;
    Job* job = nullptr;
  };

  Job* job_of(const Origin& origin);
  std::optional<uint64_t> base_of(const Origin& origin);
  static uint32_t epoch_of(Job& job, uint64_t index, const Origin& origin);

  uint32_t next_job_;
  uint64_t next_base_ = 0;
  const char* problem_ = nullptr;
  std::map<std::pair<policy::SessionId, policy::DatasetId>, Job> jobs_;  // by owner and dataset
  std::map<std::pair<std::string, uint64_t>, uint64_t> base_;            // by name and size
  std::unordered_map<uint64_t, std::vector<Open>> open_;                 // by reader
};

}  // namespace sluice::optimizer
