// The files of policy/chunks/log_plan.h's two logs, in a folder on a fast disk. They have no names:
// whatever ends this process, nothing is left of them, and nothing is ever to be recovered
// (LCache's logs are of one run, too: the order of its epochs is). The caller compares what is read
// with the checksum of what it wrote: a disk that returns other bytes then costs a
// read of the original.
//
// Each log is several files by turns, kStripe bytes of each: a file system lets a write wait for
// all reads of the same file that have begun, and those that come then for the write.
//
// All functions but open() block in the file system and are for the executor's threads; any number
// of them may run at a time, but not two that write, or one that writes and one that reads or
// releases, the same bytes, and clear() of a log not with a write to it or a release of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "optimizer/chunks/aligned_buffer.h"
#include "policy/chunks/log_index.h"
#include "protocol/unique_fd.h"

namespace sluice::optimizer {

class LogFiles {
 public:
  // In the folder at `path`. nullptr: *reason is one line.
  static std::unique_ptr<LogFiles> open(const std::string& path, std::string* reason);

  // Writes a sample at `offset` of a log, 0 or 1. 0, or an errno: it is not in the log then.
  int write(uint32_t log, uint64_t offset, std::span<const std::byte> bytes);
  static uint64_t checksum(std::span<const std::byte> bytes);  // never 0

  // Reads a range, which begins at a block, with one request past the page cache where the file
  // system can. The range is rounded up to whole blocks; what lies beyond the file's end, and what
  // was never written, is zeros. Empty: *error is an errno. kCache: through the page cache, which
  // has what was written a moment ago.
  enum class From : uint8_t { kDisk, kCache };
  AlignedBuffer read(uint32_t log, policy::LogRange range, int* error,
                     From from = From::kDisk) const;

  // Gives whole blocks back to the file system. 0, or an errno: EOPNOTSUPP where it cannot release
  // a part of a file, which then takes its room until clear().
  int release(uint32_t log, policy::LogRange range);
  // Makes a log empty. A file system takes seconds to give up what it is just writing to its disk,
  // so the log has new files, and those that it had are closed by close_cleared().
  void clear(uint32_t log);
  // Gives what was cleared back to the file system, or waits until another thread has. To be called
  // after each clear(), from a thread that nothing waits for; a full disk calls it, too.
  void close_cleared();

  // Gives both logs back to the file system, although what waits for the storage of an original may
  // hold this for as long: from now on reads and writes fail with EIO. Not with clear().
  void end();

  bool is_direct() const { return direct_; }  // whether reads go past the page cache
  // Bytes that a log takes on the disk. 0 if that cannot be found out.
  uint64_t taken(uint32_t log) const;
  // For tests: of the first kStripe bytes.
  int descriptor(uint32_t log) const { return files(log)->front().fd.get(); }

  static constexpr uint64_t kStripe = 64 << 20;
  static constexpr size_t kStripes = 16;

 private:
  struct File {
    UniqueFd fd, direct;  // of the same file; `direct` for O_DIRECT reads, none where they fail
  };

  using Files = std::array<File, kStripes>;

  explicit LogFiles(std::string path) : path_(std::move(path)) {}
  static int make(const std::string& path, File* file);
  std::shared_ptr<const Files> make_files(int* error) const;  // nullptr: *error is an errno
  std::shared_ptr<const Files> files(uint32_t log) const;
  int write_once(const Files& files, uint64_t offset, std::span<const std::byte> bytes);
  // The part of a range, from its begin on, that is in one file: that file, and where it is there.
  static const File& part(const Files& files, policy::LogRange range, policy::LogRange* part);

  const std::string path_;
  const AlignedBuffer::Keep keep_;
  bool direct_ = false;
  std::mutex closing_;        // held while files are closed; taken before the other
  mutable std::mutex mutex_;  // of these:
  std::array<std::shared_ptr<const Files>, 2> files_;  // null after end()
  std::vector<std::shared_ptr<const Files>> cleared_;
};

}  // namespace sluice::optimizer
