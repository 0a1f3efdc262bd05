// The chunks of copy_log.h's log that are being read, or were, and whose samples wait for their
// fetches: each is read once, with one request, ahead of the readers. Core thread only; the disk is
// read on threads of its own and on those of the fetches.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "optimizer/chunks/log_files.h"
#include "optimizer/chunks/logged_copy.h"
#include "optimizer/io/executor.h"
#include "optimizer/sessions/plans.h"
#include "policy/chunks/followed_job.h"
#include "policy/chunks/log_contents.h"

namespace sluice::optimizer {

class LogReads {
 public:
  using SampleId = policy::SampleId;
  struct Log {  // of the running epoch
    const std::shared_ptr<LogFiles>& files;
    const policy::FollowedJob& job;
    const policy::LogContents& contents;
  };

  explicit LogReads(const Plans* plans);

  // REQUIRES: the sample is in the log that is read. What it comes with: its whole chunk, if that
  // is read in order, else the sample alone. To be called once for each fetch.
  std::shared_ptr<LogRead> read_of(const Log& log, SampleId sample);
  bool empty() const { return reads_.empty(); }
  // The log is about to be cleared.
  void clear();

  // Requests: of whole chunks, of one sample.
  uint64_t chunk_reads() const { return chunk_reads_; }
  uint64_t lone_reads() const { return lone_reads_; }

 private:
  struct OpenRead {  // of a chunk
    uint32_t chunk = 0;
    uint64_t bytes = 0;
    std::vector<SampleId> left;  // members that no fetch has asked for
    std::shared_ptr<LogRead> read;
  };

  OpenRead* open_chunk(const Log& log, uint32_t chunk, bool ahead);
  void close_read(const Log& log);
  void read_ahead(const Log& log, uint32_t chunk);

  const Plans* const plans_;
  std::deque<OpenRead> reads_;
  uint64_t chunk_reads_ = 0, lone_reads_ = 0;
  Executor readers_;
};

}  // namespace sluice::optimizer
