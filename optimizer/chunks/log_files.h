// The files of policy/chunks/log_plan.h's two logs, in a folder on a fast disk. They have no names:
// whatever ends this process, nothing is left of them, and nothing is ever to be recovered
// (LCache's logs are of one run, too: the order of its epochs is). What is read is checked against
// a checksum that only memory has, so that a disk that returns other bytes costs a read of the
// original.
//
// All functions but open() block in the file system and are for the executor's threads; any number
// of them may run at a time, but not two that write, or one that writes and one that reads or
// releases, the same bytes. 8 bytes of memory a sample.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "policy/chunks/log_index.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class LogFiles {
 public:
  // For samples numbered below `samples`, in the folder at `path`. nullptr: *reason is one line.
  static std::unique_ptr<LogFiles> open(const std::string& path, uint32_t samples,
                                        std::string* reason);

  // Writes a sample at `offset` of a log, 0 or 1. 0, or an errno: it is not in the log then.
  int write(uint32_t log, uint64_t offset, policy::SampleId sample,
            std::span<const std::byte> bytes);

  // Reads a range, which begins at a block, with one request past the page cache where the file
  // system can. The range is rounded up to whole blocks; what lies beyond the file's end, and what
  // was never written, is zeros. Empty: *error is an errno.
  AlignedBuffer read(uint32_t log, policy::LogRange range, int* error) const;

  // Whether these are the bytes that were written for the sample.
  bool is_whole(uint32_t log, policy::SampleId sample, std::span<const std::byte> bytes) const;

  // Gives whole blocks, or all of a log, back to the file system. 0, or an errno: EOPNOTSUPP where
  // it cannot release a part of a file, which then takes its room until clear().
  int release(uint32_t log, policy::LogRange range);
  int clear(uint32_t log);

  bool is_direct() const { return direct_; }  // whether reads go past the page cache
  // Bytes that a log takes on the disk. 0 if that cannot be found out.
  uint64_t taken(uint32_t log) const;
  int descriptor(uint32_t log) const { return files_[log].fd.get(); }  // for tests

 private:
  struct File {
    UniqueFd fd, direct;  // of the same file; `direct` for O_DIRECT reads, none where they fail
    std::vector<uint64_t> sums;  // by sample
  };

  explicit LogFiles(uint32_t samples);
  static int make(const std::string& path, File* file);

  std::array<File, 2> files_;
  bool direct_ = false;
};

}  // namespace sluice::optimizer
