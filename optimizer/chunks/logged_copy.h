// A sample's bytes in a log of log_files.h, as a fetch takes them: whole chunks are read with one
// request each, by the first fetch that needs one of their samples.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "optimizer/chunks/log_files.h"
#include "policy/chunks/log_contents.h"
#include "policy/chunks/log_index.h"

namespace sluice::optimizer {

// Ranges of a log that are read together, once. Any thread.
class LogRead {
 public:
  // Ranges that begin at blocks, in ascending order.
  LogRead(std::shared_ptr<const LogFiles> files, uint32_t log,
          std::vector<policy::LogRange> ranges);

  // Reads the ranges, or waits until they have been read.
  void prepare();
  // The log is about to be cleared: ranges that have not begun to be read are not, and have no
  // bytes.
  void cancel() { canceled_ = true; }
  // The bytes at `place`; prepares them first. Empty: no range contains the place, or the disk
  // failed. Valid as long as this is.
  std::span<const std::byte> bytes(policy::LogRange place);

 private:
  const std::shared_ptr<const LogFiles> files_;
  const uint32_t log_;
  const std::vector<policy::LogRange> ranges_;
  std::atomic<bool> canceled_{false};
  std::once_flag once_;
  std::vector<AlignedBuffer> buffers_;  // by range
};

struct LoggedCopy {
  std::shared_ptr<LogRead> read;
  policy::LogRange place;
  policy::LogContents::Entry entry;  // what was written there
};

// 0: the bytes were written to `to`, at its offset. EBADMSG: the log has other ones; or an errno.
// After a failure a part of them may have been written.
int copy_logged(const LoggedCopy& logged, int to);

}  // namespace sluice::optimizer
